import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { chunkText } from '../cells/chunk.ts';
import type { RenderedFile } from '../render/render.ts';
import { isSecret } from '../render/validation/targets.ts';
import { EXIT, type Command } from './command.ts';
import { COMPILE_OPTIONS, compileOptions } from './compile-options.ts';
import { hasErrors, renderDirectory, tellProblems, toldAsJson, type Rendered } from './one-shot.ts';

export const render: Command = {
  name: 'render',
  arguments: ['DIR'],
  summary: 'Print the files that a directory of manifests renders to, or write them',
  details:
    'Certificates are named but not printed; --out writes them, readable for this user alone.',
  options: {
    ...COMPILE_OPTIONS,
    out: { type: 'string', value: 'DIR', help: 'write the files below this directory instead' },
  },
  run: async ({ positionals, values, terminal }) => {
    const rendered = await renderDirectory(
      positionals[0] ?? '',
      await compileOptions(values, terminal),
    );
    const out = typeof values['out'] === 'string' ? resolve(values['out']) : undefined;
    const written = out === undefined ? [] : await writeFiles(rendered.render, out);
    if (values['output'] === 'json') terminal.out(toldAsJson(asJson(rendered, out !== undefined)));
    else {
      tellProblems(rendered.problems, terminal);
      for (const path of written) terminal.out(`${path}\n`);
      if (out === undefined)
        for (const file of inOrder(rendered.render)) terminal.out(asText(file));
    }
    return rendered.render === undefined || hasErrors(rendered.problems)
      ? EXIT.badInput
      : EXIT.good;
  },
};

const inOrder = (render: Rendered['render']): readonly RenderedFile[] =>
  [...(render?.files.values() ?? [])].sort((left, right) => (left.path < right.path ? -1 : 1));

const contentOf = (file: RenderedFile): string =>
  isSecret(file) ? `(${String(file.text.size)} bytes, not shown)\n` : chunkText(file.text);

const asText = (file: RenderedFile): string => {
  const content = contentOf(file);
  return `### ${file.path}\n${content}${content.endsWith('\n') || content === '' ? '' : '\n'}\n`;
};

const asJson = ({ render: one, problems }: Rendered, isWritten: boolean): object => ({
  planId: one?.plan.id,
  files: inOrder(one).map((file) => ({
    path: file.path,
    kind: file.kind,
    size: file.text.size,
    ...(isWritten ? {} : { content: contentOf(file) }),
  })),
  problems,
});

/** Returns the paths that were written. */
const writeFiles = async (
  rendered: Rendered['render'],
  directory: string,
): Promise<readonly string[]> => {
  const written: string[] = [];
  for (const file of inOrder(rendered)) {
    const path = join(directory, file.path);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, chunkText(file.text), { mode: isSecret(file) ? 0o600 : 0o644 });
    written.push(path);
  }
  return written;
};
