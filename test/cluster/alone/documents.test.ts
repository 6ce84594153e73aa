/** The commands of the documents, as they stand there, on a cluster that nobody else works with. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cluster } from '../../support/cluster.ts';
import { run } from '../harness/run.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** A fenced `sh` block. */
interface Block {
  readonly page: string;
  readonly section: string;
  readonly commands: string;
}

const blocksOf = (page: string): readonly Block[] =>
  readFileSync(join(ROOT, page), 'utf8')
    .split(/^## /m)
    .flatMap((text) => {
      const section = text.slice(0, text.indexOf('\n'));
      return [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, commands = '']) => ({
        page,
        section,
        commands,
      }));
    });

const isEnd = ({ section }: Block): boolean => section === 'Uninstall';
const install = blocksOf('docs/install.md');
const BLOCKS = [
  ...install.filter((block) => !isEnd(block)),
  ...blocksOf('docs/operations.md'),
  ...blocksOf('docs/troubleshooting.md'),
  ...install.filter(isEnd),
];

const folder = mkdtempSync(join(tmpdir(), 'haptic-documents-'));

const imageOf = (key: string): object => {
  const [repository, tag] = (cluster().images[key] ?? '').split(':');
  return { repository, tag };
};

/** A helm that takes the images of the tests in place of those of a registry. */
beforeAll(async () => {
  const values = join(folder, 'images.json');
  writeFileSync(
    values,
    JSON.stringify({
      image: imageOf('controller'),
      agent: { image: imageOf('agent') },
      haproxy: { image: imageOf('haproxy-3.4') },
    }),
  );
  const { stdout } = await run(['sh', '-c', 'command -v helm']);
  const program = join(folder, 'helm');
  writeFileSync(
    program,
    `#!/bin/sh
case "$1" in install | upgrade) exec ${stdout.trim()} "$@" --values ${values} ;; esac
exec ${stdout.trim()} "$@"
`,
  );
  chmodSync(program, 0o755);
});

afterAll(async () => {
  await run(['helm', 'uninstall', 'haptic', '-n', 'haptic', '--wait', '--ignore-not-found']);
  await run(['kubectl', 'delete', 'namespace', 'haptic', '--ignore-not-found']);
  rmSync(folder, { recursive: true });
});

describe.runIf(cluster().machines !== undefined)('the documents', () => {
  test('have commands for every stage of an installation', () => {
    expect(install.map(({ section }) => section)).toStrictEqual([
      ...['Install', 'Upgrade', 'Downgrade', 'Uninstall'],
    ]);
    expect(new Set(BLOCKS.map(({ page }) => page)).size).toBe(3);
  });

  test.each(BLOCKS)('run: $page, $section', async ({ commands }) => {
    const path = `${folder}${delimiter}${process.env['PATH'] ?? ''}`;
    const outcome = await run(['bash', '-eu', '-o', 'pipefail', '-c', commands], {
      cwd: ROOT,
      env: { ...process.env, PATH: path },
      timeoutMs: 290_000,
    });
    expect(outcome.status, `${commands}\n${outcome.stdout}\n${outcome.stderr}`).toBe(0);
  });
});
