import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const root = new URL('../../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');

/** A diagram: the marbles of each line by its label, without the spaces that align them. */
type Diagram = Readonly<Record<string, string>>;

/** Reads the one diagram in a fenced `marbles` block; `prefix` is what precedes each line of it. */
function fencedDiagram(text: string, prefix = ''): Diagram {
  const blocks = text.split(`${prefix}\`\`\`marbles\n`).slice(1);
  expect(blocks).toHaveLength(1);
  const [body = ''] = blocks[0]!.split(`${prefix}\`\`\``);
  const lines = body.trimEnd().split('\n');
  return Object.fromEntries(
    lines.map((line) => {
      const [label = '', marbles = ''] = line.slice(prefix.length).split(/:(.*)/);
      return [label, atColumn(marbles, label.length)];
    }),
  );
}

/** Diagrams start at column 10, so a line's own start says how many frames later it happens. */
const MARBLES_COLUMN = 10;

function atColumn(marbles: string, labelLength: number): string {
  return marbles.slice(MARBLES_COLUMN - labelLength - 1).trim();
}

/** Reads the `const label = 'marbles';` lines of the spec's diagram test. */
function specDiagram(spec: string): Diagram {
  const tests = spec.split(/\n {2}it\(\n/).filter((test) => test.includes("'matches its diagram"));
  expect(tests).toHaveLength(1);
  const constants = tests[0]!.matchAll(/^ +const (\w+) = '([^']*)';$/gm);
  return Object.fromEntries(
    [...constants].map(([, label = '', text = '']) => [label, text.trim()]),
  );
}

/** The section of the page under `## name`. */
function section(page: string, name: string): string {
  const [, text = ''] = page.split(`\n## ${name}\n`);
  return text.split('\n## ')[0]!;
}

const camelCase = (kebab: string): string =>
  kebab.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

const page = read('docs/operators.md');
const operators = readdirSync(new URL('src/operators/', root))
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.replace(/\.ts$/, ''));

describe('docs/operators.md', () => {
  it('has a section for every operator and no other', () => {
    const sections = [...page.matchAll(/^## (.*)$/gm)].map(([, name]) => name);
    expect(sections.toSorted()).toStrictEqual(operators.map(camelCase).toSorted());
  });

  it('names every operator in its table', () => {
    const rows = [...page.matchAll(/\| \[`(\w+)`\]\(#(\w+)\)/g)];
    expect(rows.map(([, name]) => name).toSorted()).toStrictEqual(
      operators.map(camelCase).toSorted(),
    );
    expect(rows.filter(([, name, anchor]) => name?.toLowerCase() !== anchor)).toStrictEqual([]);
  });

  describe.each(operators)('%s', (operator) => {
    const source = read(`src/operators/${operator}.ts`);
    const spec = read(`test/marbles/operators/${operator}.test.ts`);

    it('has in its doc comment the diagram that its spec proves', () => {
      expect(specDiagram(spec)).toStrictEqual(fencedDiagram(source, ' * '));
    });

    it('has on the page the diagram that its doc comment shows', () => {
      const shown = section(page, camelCase(operator)).match(/```marbles\n([^`]*)```/)?.[1];
      const commented = source.match(/ \* ```marbles\n([^`]*) \* ```/)?.[1]?.replace(/^ \* /gm, '');
      expect(shown).toBe(commented);
    });

    it('exports the operator that its file is named after, and imports only RxJS and operators', () => {
      expect(source).toMatch(new RegExp(`^export function ${camelCase(operator)}<`, 'm'));
      const imports = [...source.matchAll(/ from '([^']*)';$/gm)].map(([, from]) => from);
      expect(
        imports.filter((from) => from !== 'rxjs' && !/^\.\/[\w-]+\.ts$/.test(from!)),
      ).toStrictEqual([]);
      expect(page).toContain(`(../src/operators/${operator}.ts)`);
    });
  });
});
