import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const root = new URL('../../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');

const page = read('docs/troubleshooting.md');

/** How the source gives a reason: as a field or variable, or as an argument of what makes a problem or an Event. */
const GIVEN = [
  /\breason(?::| =)\s*([^,;{}]*)/g,
  /\b(?:problem|refuse)\(\s*('[A-Z]\w+')/g,
  /'(?:Normal|Warning)', ('[A-Z]\w+')/g,
];

const inSource = (): ReadonlySet<string> => {
  const files = readdirSync(new URL('src/', root), { recursive: true, encoding: 'utf8' });
  const texts = files.filter((file) => file.endsWith('.ts')).map((file) => read(`src/${file}`));
  const given = texts.flatMap((text) => GIVEN.flatMap((pattern) => [...text.matchAll(pattern)]));
  return new Set(
    given.flatMap(([, value = '']) =>
      [...value.matchAll(/'([A-Z][A-Za-z]+)'/g)].map(([, reason = '']) => reason),
    ),
  );
};

/** Reasons in the first column of the tables. */
const onPage = (): ReadonlySet<string> =>
  new Set(
    page
      .split('\n')
      .filter((line) => line.startsWith('| `'))
      .flatMap((line) => [...(line.split('|')[1] ?? '').matchAll(/`([A-Z]\w+)`/g)])
      .map(([, reason = '']) => reason),
  );

it('R18: docs/troubleshooting.md explains every reason that a problem can have, and no other', () => {
  const reasons = inSource();
  expect(reasons.size).toBeGreaterThan(70);
  expect([...onPage()].sort()).toStrictEqual([...reasons].sort());
});

it('R18: docs/troubleshooting.md says of each reason what to do, or that nothing is wrong', () => {
  const rows = page.split('\n').filter((line) => /^\| `[A-Z]/.test(line));
  expect(rows.length).toBeGreaterThan(60);
  for (const row of rows) {
    const [, , meaning = '', step = ''] = row.split('|').map((cell) => cell.trim());
    expect(meaning, row).not.toBe('');
    if (step === '') expect(row).toMatch(/nothing is wrong|the same as Events/);
  }
});

it('names sections and tests that exist', () => {
  const anchors = [...page.matchAll(/^## (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\w\s-]/g, '')
      .replace(/ /g, '-'),
  );
  for (const [, anchor = ''] of page.matchAll(/\]\(#([\w-]+)\)/g))
    expect(anchors).toContain(anchor);
  for (const [, path = ''] of page.matchAll(/`(test\/[\w/.-]+\.test\.ts)`/g)) {
    expect(existsSync(new URL(path, root)), path).toBe(true);
  }
});
