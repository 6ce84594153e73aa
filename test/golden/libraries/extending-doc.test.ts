import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Contributors } from '../../../src/render/explain-contributors.ts';
import { explainLine } from '../../../src/render/explain-line.ts';
import { lineAsText } from '../../../src/cli/explain-text.ts';
import { exampleConfig, exampleObjects } from '../../support/examples.ts';
import { snapshotFor } from '../../support/objects.ts';
import { LIBRARIES, libraryEngine, renderAll } from '../../support/rendered.ts';

const ROOT = join(LIBRARIES, '..');
const PAGE = readFileSync(join(ROOT, 'docs', 'extending.md'), 'utf8');
const EXAMPLE = join(ROOT, 'examples', 'extending');

const texts = readdirSync(EXAMPLE).map((file) => readFileSync(join(EXAMPLE, file), 'utf8'));

const indented = (block: string, width: number): string =>
  block.replaceAll(/^(?=.)/gm, ' '.repeat(width));

/** Blocks of the page; one inside a list is moved to the left. */
const blocksOf = (language: string): string[] =>
  [...PAGE.matchAll(new RegExp(`^( *)\`\`\`${language}\\n(.*?)^ *\`\`\``, 'gms'))].map(
    ([, indent = '', text = '']) => text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  );

describe('docs/extending.md', () => {
  test.each(blocksOf('yaml').map((block) => [block.split('\n')[0] ?? '', block] as const))(
    'shows a part of the example: %s',
    (_first, block) => {
      const isThere = texts.some((text) =>
        [0, 2, 4].some((width) => text.includes(indented(block, width))),
      );
      expect(isThere).toBe(true);
    },
  );

  test('shows all templates of the example', () => {
    expect(blocksOf('yaml')).toHaveLength(10);
    const config = exampleConfig('extending')?.['spec'] as Record<string, object>;
    const names = ['maps', 'templateSnippets'].flatMap((field) => Object.keys(config[field] ?? {}));
    const lines = blocksOf('yaml').flatMap((block) => block.split('\n'));
    expect(names.filter((name) => !lines.includes(`${name}:`))).toStrictEqual([]);
  });

  test('lets no Ingress be served without what tells its limit', async () => {
    const config = exampleConfig('extending');
    const { protective } = await libraryEngine(config === undefined ? {} : { config });
    expect([...protective]).toStrictEqual([expect.stringContaining('templateSnippets.max-body.')]);
  });

  test('shows an explanation as the command gives it', async () => {
    const config = exampleConfig('extending');
    const engine = await libraryEngine(config === undefined ? {} : { config });
    const render = renderAll(engine, snapshotFor(engine.watched, exampleObjects('extending')));
    const contributors = new Contributors(render.snapshot, {
      ...{ name: 'haptic', controller: 'haproxy-haptic.org/controller', withoutObject: true },
    });
    const [, file = '', line = '', told] =
      /explain examples\/extending --file (\S+) --line (\d+)\n(.*)/s.exec(
        blocksOf('console')[0] ?? '',
      ) ?? [];
    const explained = explainLine({ render, contributors }, { file, line: Number(line) });
    expect(explained.ok ? lineAsText(explained.explanation) : explained.message).toBe(told);
  });
});
