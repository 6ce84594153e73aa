import { describe, expect, test } from 'vitest';
import { PersistentMap } from '../../../src/cells/persistent-map.ts';
import type { MadeLine } from '../../../src/render/made-line.ts';
import type { Render } from '../../../src/render/render.ts';
import {
  HEAD,
  backendModel,
  configMap,
  engineOf,
  renderOf,
  server,
  snapshotOf,
  withObjects,
  type Routes,
  type TemplateParts,
} from '../../support/templates.ts';

const OBJECTS = ['one', 'two'].map((name) => configMap(name, { n: name }));

const linesOf = (
  parts: TemplateParts,
  path = 'haproxy.cfg',
  route?: () => Routes,
): readonly MadeLine[] => {
  const engine = engineOf({ ...parts, main: `${HEAD}${parts.main ?? ''}` }, route);
  return [...renderOf(engine, snapshotOf(OBJECTS)).lines(path)];
};

/** Where the line with this text comes from: innermost place first. */
const placesOf = (lines: readonly MadeLine[], text: string): string =>
  (lines.find((line) => line.text === text)?.printedBy ?? [])
    .map(({ template, line }) => `${template}:${line}`)
    .join(' < ');

const makersOf = (lines: readonly MadeLine[], text: string): readonly string[] =>
  lines
    .filter((line) => line.text === text)
    .flatMap(({ makers }) => makers.map(({ object }) => object?.name ?? '?'));

const CELLS = '{% cells m in resources.configmaps.list() key m.metadata.name %}';

describe('the template lines behind a line', () => {
  test('are those of the snippet and of everything that includes it', () => {
    const snippets = { outer: '# outer\n{% include "inner" %}\n# again\n', inner: '# inner\n' };
    const lines = linesOf({ main: '# main\n{% include "outer" %}\n# end\n', snippets });
    expect(placesOf(lines, '# main')).toBe('main:3');
    expect(placesOf(lines, '# outer')).toBe('snippets/outer:1 < main:4');
    expect(placesOf(lines, '# inner')).toBe('snippets/inner:1 < snippets/outer:2 < main:4');
    expect(placesOf(lines, '# again')).toBe('snippets/outer:3 < main:4');
    expect(placesOf(lines, '# end')).toBe('main:5');
  });

  test('are kept by what is captured, and by macros', () => {
    const snippets = {
      lib: '{% macro m(n) %}\n# macro {{ n }}\n{% endmacro %}',
      page: '{% set x %}\n# captured\n{% endset %}\n{{ x }}\n{% from "lib" import m %}\n{{ m(2) }}\n',
    };
    const main = '{% include "page" %}\n{% from "lib" import m %}\n{{ m(1) }}';
    const lines = linesOf({ main, snippets });
    expect(placesOf(lines, '# captured')).toBe('snippets/page:2 < main:3');
    expect(placesOf(lines, '# macro 1')).toBe('snippets/lib:2 < main:5');
    expect(placesOf(lines, '# macro 2')).toBe('snippets/lib:2 < snippets/page:6 < main:3');
  });

  test('are told apart where one snippet is included twice', () => {
    const snippets = { a: '{% include "c" %}', b: '{% include "c" %}', c: '# c\n' };
    const lines = linesOf({ main: '{% include "a" %}\n{% include "b" %}\n', snippets });
    expect(
      lines.filter(({ text }) => text === '# c').map(({ printedBy }) => printedBy.at(1)),
    ).toEqual([
      { template: 'snippets/a', line: 1 },
      { template: 'snippets/b', line: 1 },
    ]);
  });

  test('lead out of a cell to what includes its tag', () => {
    const snippets = { tag: `\n${CELLS}\n# {{ m.data.n | comment }}\n{% endcells %}\n` };
    const lines = linesOf({ main: '{% include "tag" %}\n', snippets });
    expect(placesOf(lines, '# two')).toBe('snippets/tag:3 < main:3');
    expect(makersOf(lines, '# two')).toEqual(['two']);
  });
});

describe('the cells behind a line', () => {
  test('are all that print a part of it', () => {
    const main = `# all:${CELLS} {{ m.data.n | comment }}{% endcells %}.\n# end\n`;
    const lines = linesOf({ main });
    expect(makersOf(lines, '# all: one two.')).toEqual(['one', 'two']);
    expect(makersOf(lines, '# end')).toEqual([]);
  });

  test('are those that declare an entry, also of another map and more than one', () => {
    const maps = {
      'a.map': `${CELLS}\n{{ map_entry(m.data.n, "x") }}\n{{ map_entry("same", "y", "b.map") }}\n{% endcells %}`,
      'b.map': '{{ map_entry("own", "z") }}',
    };
    const [a, b] = ['maps/a.map', 'maps/b.map'].map((path) => linesOf({ maps }, path));
    expect(makersOf(a ?? [], 'two x')).toEqual(['two']);
    expect(placesOf(a ?? [], 'two x')).toBe('maps/a.map:2');
    expect(makersOf(b ?? [], 'same y')).toEqual(['one', 'two']);
    expect(placesOf(b ?? [], 'same y')).toBe('maps/a.map:3');
    expect(makersOf(b ?? [], 'own z')).toEqual([]);
    expect(placesOf(b ?? [], 'own z')).toBe('maps/b.map:1');
  });

  test('are those of an ordered map too, where keys may repeat', () => {
    const orderedMaps = {
      'o.map': `{{ map_entry("k", "0") }}\n${CELLS}\n{{ map_entry("k", m.data.n) }}\n{% endcells %}`,
    };
    const lines = linesOf({ orderedMaps }, 'maps/o.map');
    expect(lines.map(({ text }) => text)).toEqual(['k 0', 'k one', 'k two']);
    expect(makersOf(lines, 'k two')).toEqual(['two']);
    expect(placesOf(lines, 'k two')).toBe('maps/o.map:3');
  });

  test('are those that declare a file, a certificate list, or print into a file', () => {
    const call =
      '{{ file(m.data.n, "first\\nsecond\\n") }}{{ crt_list("l.crt-list", [{ certificate: m.data.n }]) }}';
    const main = `${CELLS}${call}{% endcells %}\n`;
    const declared = linesOf({ main }, 'general/two');
    expect(declared.map(({ text }) => text)).toEqual(['first', 'second']);
    expect(makersOf(declared, 'second')).toEqual(['two']);
    const list = linesOf({ main }, 'certs/l.crt-list');
    expect(makersOf(list, 'certs/two.pem')).toEqual(['two']);
    const files = { page: `top\n${CELLS}\n{{ m.data.n | text }}\n{% endcells %}\n` };
    const printed = linesOf({ files }, 'general/page');
    expect(makersOf(printed, 'two')).toEqual(['two']);
    expect(placesOf(printed, 'top')).toBe('files/page:1');
  });

  test('name the element of routes that they are made for', () => {
    const main =
      '{% cells b in routes.backends %}\n{{ backend({ name: b.name, profile: "p", servers: b.servers }) }}\n{% endcells %}\n';
    const backends = PersistentMap.from([['b1', backendModel('b1', [server('s', '10.0.0.1')])]]);
    const lines = linesOf({ main }, 'haproxy.cfg', () => ({
      hosts: PersistentMap.EMPTY,
      backends,
    }));
    const found = lines.find(({ text }) => text === 'backend b1 from p');
    expect(found?.makers).toMatchObject([
      { object: { name: 'b1' }, element: { collection: 'backends', key: 'b1' } },
    ]);
  });

  test('are those of the render that is asked, also after another one', () => {
    const engine = engineOf({
      main: HEAD,
      maps: { 'a.map': `${CELLS}\n{{ map_entry(m.data.n, "x") }}\n{% endcells %}` },
    });
    const first = snapshotOf(OBJECTS);
    const before = renderOf(engine, first);
    const after = renderOf(engine, withObjects(first, [configMap('three', { n: 'three' })]));
    const textsOf = (made: Render) => [...made.lines('maps/a.map')].map(({ text }) => text);
    expect(textsOf(before)).toEqual(['one x', 'two x']);
    expect(textsOf(after)).toEqual(['one x', 'three x', 'two x']);
    expect([...after.lines('maps/nowhere.map')]).toEqual([]);
  });
});
