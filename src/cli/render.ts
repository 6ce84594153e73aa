import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { chunkText } from '../cells/chunk.ts';
import type { Render, RenderedFile } from '../render/render.ts';
import { EXIT, type Command, type Terminal } from './command.ts';
import { COMPILE_OPTIONS, compileOptions } from './compile-options.ts';
import { hasErrors, renderDirectory, tellProblems } from './one-shot.ts';

/** Kinds whose content is not for a terminal. */
const SECRET: ReadonlySet<string> = new Set(['cert', 'ca', 'crl']);

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
    tellProblems(rendered.problems, terminal);
    if (rendered.render === undefined) return EXIT.badInput;
    const out = values['out'];
    if (typeof out === 'string') await writeFiles(rendered.render, resolve(out), terminal);
    else if (values['output'] === 'json')
      terminal.out(`${JSON.stringify(asJson(rendered.render), undefined, 2)}\n`);
    else for (const file of inOrder(rendered.render)) terminal.out(asText(file));
    return hasErrors(rendered.problems) ? EXIT.badInput : EXIT.good;
  },
};

const inOrder = ({ files }: Render): readonly RenderedFile[] =>
  [...files.values()].sort((left, right) => (left.path < right.path ? -1 : 1));

const contentOf = ({ kind, text }: RenderedFile): string =>
  SECRET.has(kind) ? `(${String(text.size)} bytes, not shown)\n` : chunkText(text);

const asText = (file: RenderedFile): string => {
  const content = contentOf(file);
  return `### ${file.path}\n${content}${content.endsWith('\n') || content === '' ? '' : '\n'}\n`;
};

const asJson = (rendered: Render): unknown => ({
  planId: rendered.plan.id,
  files: inOrder(rendered).map((file) => ({
    path: file.path,
    kind: file.kind,
    size: file.text.size,
    content: contentOf(file),
  })),
});

const writeFiles = async (
  rendered: Render,
  directory: string,
  { out }: Terminal,
): Promise<void> => {
  for (const file of inOrder(rendered)) {
    const path = join(directory, file.path);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, chunkText(file.text), { mode: SECRET.has(file.kind) ? 0o600 : 0o644 });
    out(`${path}\n`);
  }
};
