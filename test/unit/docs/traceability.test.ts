import { existsSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const read = (path: string): string =>
  readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');

interface Row {
  readonly id: string;
  readonly tests: readonly string[];
}

/** Table rows that begin with an id; the tests they name stand in backticks in the last column. */
const rowsOf = (page: string): readonly Row[] =>
  read(page)
    .split('\n')
    .flatMap((line) => {
      const cells = line.split('|').map((cell) => cell.trim());
      const id = cells[1] ?? '';
      if (!/^[GPSTR]\d+$/.test(id)) return [];
      return [
        {
          id,
          tests: [...(cells.at(-2) ?? '').matchAll(/`((?:test|agent)\/[^`]+)`/g)].map(
            ([, path]) => path ?? '',
          ),
        },
      ];
    });

const expected = [
  ...Array.from({ length: 14 }, (_, index) => `G${String(index + 1)}`),
  ...Array.from({ length: 10 }, (_, index) => `P${String(index + 1)}`),
];

it('lists every guarantee and every law once', () => {
  expect(rowsOf('docs/guarantees.md').map(({ id }) => id)).toStrictEqual(expected);
});

it.each(rowsOf('docs/guarantees.md'))('names for $id a test that names it', ({ id, tests }) => {
  expect(tests.length).toBeGreaterThan(0);
  for (const path of tests) {
    // The id stands in a title, between quotes.
    expect(read(path), path).toMatch(new RegExp(`['\`"][^'\`"\n]*\\b${id}\\b[^'\`"\n]*['\`"]`));
  }
});

it('names only tests that exist for the requirements', () => {
  const rows = rowsOf('docs/requirements.md');
  expect(rows.length).toBeGreaterThan(80);
  const missing = rows.flatMap(({ id, tests }) =>
    tests
      .filter((path) => !existsSync(new URL(`../../../${path}`, import.meta.url)))
      .map((path) => `${id}: ${path}`),
  );
  expect(missing).toStrictEqual([]);
});
