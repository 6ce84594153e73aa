import { describe, expect, test } from 'vitest';
import {
  HEAD,
  engineOf,
  refusedProblems,
  renderOf,
  snapshotOf,
  type TemplateParts,
} from '../../support/templates.ts';

const extraContext = { a: 'x', b: 'y', flag: true, list: ['x'], size: 1 };

/** What is told, as `message (source:line:column)`. */
const told = (template: string, parts: TemplateParts = {}): string[] =>
  refusedProblems({ extraContext, ...parts, main: `${HEAD}${template}` }).map(
    ({ message, place }) => {
      const { source = '', line = 0, column = 0 } = place ?? {};
      return `${message} (${source}:${String(line)}:${String(column)})`;
    },
  );

const A = '{{ extraContext.a | quoted }}';
const L = '{{ extraContext.a | logFormat }}';
const DOUBLE = 'the emitter "quoted" does not fit inside double quotes; "token" does.';
const FORMAT = 'the emitter "quoted" does not fit in a log format; "logFormat" does.';
const WORD =
  'the emitter "logFormat" does not fit as a word that HAProxy takes as it is; "quoted" does.';
const START =
  'the emitter "quoted" does not fit at the start of a line, where HAProxy reads a keyword; no emitter does.';

describe('the state of a line is followed through tags (P9)', () => {
  test.each([
    ['if', `log-tag "{% if extraContext.flag %}x{% else %}y{% endif %}${A}"\n`, DOUBLE],
    ['both arms', `log-{% if extraContext.flag %}tag "{% else %}tag "{% endif %}${A}"\n`, DOUBLE],
    ['an if without else', `log-tag "{% if extraContext.flag %}x{% endif %}${A}"\n`, DOUBLE],
    ['switch', `log-tag "{% switch 1 %}{% case 2 %}x{% default %}y{% endswitch %}${A}"\n`, DOUBLE],
    ['for', `log-tag "{% for x in extraContext.list %}${A}{% endfor %}"\n`, DOUBLE],
    ['behind for', `log-tag "{% for x in extraContext.list %}x {% endfor %}${A}"\n`, DOUBLE],
    [
      'for, else',
      `log-tag "{% for x in extraContext.list %}x{% else %}${A}{% endfor %}"\n`,
      DOUBLE,
    ],
    ['lines of a loop', `{% for x in extraContext.list %}\nlog-tag "${A}"\n{% endfor %}`, DOUBLE],
    ['cells', `{% cells h in routes.hosts %}\nlog-tag ${L}\n{% endcells %}`, WORD],
    ['section', `{% section "s" %}\nlog-tag "${A}"\n{% endsection %}`, DOUBLE],
    ['a captured block', `{% set x %}${A}{% endset %}\nlog-tag "{{ x }}"\n`, DOUBLE],
    ['an assigned emitter', `{% set x = extraContext.a | quoted %}\nlog-tag "{{ x }}"\n`, DOUBLE],
    ['macro', `{% macro m() %}${A}{% endmacro %}\nlog-tag "{{ m() }}"\n`, DOUBLE],
    [
      'a parameter',
      `{% macro m(x) %}"{{ x }}"{% endmacro %}\nlog-tag {{ m(extraContext.a | quoted) }}\n`,
      DOUBLE,
    ],
    [
      'a named one',
      `{% macro m(y=1) %}"{{ y }}"{% endmacro %}\nlog-tag {{ m(y=extraContext.a | quoted) }}\n`,
      DOUBLE,
    ],
    [
      'call',
      `{% macro m() %}"{{ caller() }}"{% endmacro %}\nlog-tag {% call m() %}${A}{% endcall %}\n`,
      DOUBLE,
    ],
    ['filter', `log-tag "{% filter indent %}${A}{% endfilter %}"\n`, DOUBLE],
    ['a literal', `log-tag {{ '"' }}${A}"\n`, DOUBLE],
    ['~', `log-tag {{ '"' ~ (extraContext.a | quoted) ~ '"' }}\n`, DOUBLE],
    ['+', `log-tag {{ '"' + (extraContext.a | quoted) + '"' }}\n`, DOUBLE],
    [
      'an inline if',
      `log-tag "{{ (extraContext.a | quoted) if extraContext.flag else 'x' }}"\n`,
      DOUBLE,
    ],
    ['and', `log-tag "{{ extraContext.flag and (extraContext.a | quoted) }}"\n`, DOUBLE],
    ['default', `log-tag "{{ (extraContext.a | quoted) | default('x') }}"\n`, DOUBLE],
    ['coalesce', `log-tag "{{ none | coalesce(extraContext.a | quoted) }}"\n`, DOUBLE],
    ['numbers', `log-format {{ extraContext.size }} x\nlog-format {{ 1 + 2 }}${A}\n`, FORMAT],
    ['a number by name', `{% set n = extraContext.size %}\nlog-format {{ n }}${A}\n`, FORMAT],
    ['loop.index', `{% for x in [1] %}log-format {{ loop.index }}${A}\n{% endfor %}`, FORMAT],
    ['a loop variable', `{% for x in ["a", "b"] %}log-format {{ x }}${A}\n{% endfor %}`, FORMAT],
    ['path()', `log-format {{ path("x", "file") }}${A}\n`, FORMAT],
    ['raw', `{% raw %}log-tag "{% endraw %}${A}"\n`, DOUBLE],
    ['a comment of the template', `log-tag "{# a "quote" #}${A}"\n`, DOUBLE],
    ['a line end in Windows style', `log-tag x\r\n${A} x\r\n`, START],
    [
      'a body by name',
      `{% set b %}\n    log-tag ${L}\n{% endset %}{% cells h in routes.hosts %}\n{% endcells %}{{ profile({name: "p", body: b}) }}`,
      WORD,
    ],
    [
      'a body of a backend',
      `{% cells b in routes.backends %}{% set c %}\n    log-tag ${L}\n{% endset %}{{ backend({ name: b.name, profile: "p", body: c }) }}{% endcells %}`,
      WORD,
    ],
    [
      'a body with a filter',
      `{% set b %}${A} x\n{% endset %}{{ profile({name: "p", body: b | indent}) }}`,
      START,
    ],
  ])('%s', (_name, template, message) => {
    const found = told(template);
    expect(found.join('\n')).toContain(message);
    expect(found).toHaveLength(1);
  });

  test.each([
    ['log-tag "{% include "s" %}"\n', { s: A }, `${DOUBLE} (snippets/s:1:21)`],
    ['log-tag "{% include "s-*" %}"\n', { 's-1': 'x', 's-2': A }, `${DOUBLE} (snippets/s-2:1:21)`],
    [`{% include "s" %}${A}"\n`, { s: 'log-tag "' }, `${DOUBLE} (main:3:38)`],
    [
      '{% include "s-*" %}\n',
      { 's-1': 'log-tag x', 's-2': `${A} x` },
      `${START} (snippets/s-2:1:21)`,
    ],
    [
      '{% set x = "log-tag " %}{% include "s" %}\n',
      { s: `{{ x }}${L}` },
      `${WORD} (snippets/s:1:28)`,
    ],
    [
      '{% from "s" import m as n %}log-tag "{{ n() }}"\n',
      { s: `{% macro m() %}${A}{% endmacro %}` },
      `${DOUBLE} (snippets/s:1:36)`,
    ],
    [
      '{% import "s" as l %}log-tag "{{ l.m() }}"\n',
      { s: `{% macro m() %}${A}{% endmacro %}` },
      `${DOUBLE} (snippets/s:1:36)`,
    ],
    [
      '{% include "s" %} x\nlog-format {% include "s" %}\n',
      { s: A },
      `${FORMAT} (snippets/s:1:21)`,
    ],
  ])('snippets: %s', (template, snippets, message) => {
    expect(told(template, { snippets })).toContain(message);
  });

  test('every mistake is told at once', () => {
    expect(told(`log-tag "${A} x ${L}"\nlog-format ${A}\n{{ nope }}\n`)).toHaveLength(4);
  });
});

describe('where the state depends on data nothing is told (P9)', () => {
  test.each([
    [
      'arms',
      `log-{% if extraContext.flag %}tag "{% else %}tag {% endif %}${A}{% if extraContext.flag %}"{% endif %}\n`,
    ],
    [
      'quotes by condition',
      `log-tag {% if extraContext.flag %}"{% endif %}x {{ extraContext.a | quoted }}{% if extraContext.flag %}"{% endif %}\n`,
    ],
    [
      'a line that a loop makes',
      `http-request {% for x in extraContext.list %}{{ x | token }} {% endfor %}${A} ${L}\n`,
    ],
    [
      'a word of a loop',
      `{% for x in extraContext.list %}{% if not loop.first %} {% endif %}log-tag ${A}{% endfor %}\n`,
    ],
    [
      'unknown text',
      `{% macro m(x) %}{{ x }} ${A}{% endmacro %}{% for l in [["log-tag x"]] %}{{ m(l | first) }}\n{% endfor %}`,
    ],
    ['joined', `{{ ["log-tag", '"'] | join(" ") }}${A}"\n`],
    [
      'a name out of two arms',
      `{% if extraContext.flag %}{% set q = '"' %}{% else %}{% set q = "" %}{% endif %}log-tag {{ q }}${A}{{ q }}\n`,
    ],
    [
      'a name that a loop sets',
      `{% set q = '"' %}{% for x in extraContext.list %}{% set q = "" %}{% endfor %}log-tag {{ q }}${A}{{ q }}\n`,
    ],
    ['a captured block for something else', `{% set x %}${A} "\n{% endset %}{{ file("f", x) }}`],
    ['a macro without end', `{% macro m() %}"{{ m() }}{% endmacro %}log-tag {{ m() }}${A}\n`],
    ['includes without end', `{% include "s" %}${A}\n`],
    [
      'many arms',
      `log-tag ${'{% if extraContext.flag %}a {% else %}b{% endif %}'.repeat(6)}"${L} x"\n`,
    ],
  ])('%s', (_name, template) => {
    expect(told(template, { snippets: { s: 'log-tag "{% include "s" %}' } })).toEqual([]);
  });

  test('the line after it is known again', () => {
    expect(told(`{{ ["log-tag", '"'] | join(" ") }}"\nlog-tag "${A}"\n`)).toHaveLength(1);
  });

  test('includes that branch without end are given up, quickly', () => {
    const snippets = Object.fromEntries(
      Array.from({ length: 30 }, (_, level) => [
        `s${String(level)}`,
        `{% include "s${String(level + 1)}" %}{% include "s${String(level + 1)}" %}`,
      ]),
    );
    const started = performance.now();
    expect(told('{% include "s0" %}', { snippets: { ...snippets, s30: 'x ' } })).toEqual([]);
    expect(performance.now() - started).toBeLessThan(2000);
  });

  const branching = Array.from({ length: 8 }).reduce<string>(
    (body) => `{% for x in extraContext.list %}${body.repeat(2)}{% endfor %}`,
    '    log-tag x\n',
  );

  test('a tag that is too much to follow is told, inside a section too', () => {
    const main = `${HEAD}{% section "s" %}\n# a\n${branching}{% endsection %}\n`;
    const { problems } = renderOf(engineOf({ main, extraContext }), snapshotOf([]));
    expect(problems).toMatchObject([
      {
        ...{ severity: 'warning', reason: 'PlacesNotChecked' },
        place: { source: 'main', line: 5, column: 4 },
      },
    ]);
  });

  test('all is checked again on the lines behind such a tag', () => {
    expect(told(`${branching}\n# a\nlog-tag "${A}"\n`)).toHaveLength(1);
    expect(
      told(`{% section "s" %}${branching}\n# a\nlog-tag "${A}"\n{% endsection %}`),
    ).toHaveLength(1);
  });

  test('a long template is checked to its end', () => {
    const lines = '    log-tag {{ extraContext.a | token }}\n'.repeat(35_000);
    expect(told(`${lines}log-tag "${A}"\n`)).toHaveLength(1);
  });

  test('templates of files and maps have no lines of HAProxy', () => {
    const files = { f: `"${A} ${L} # ${L}\n` };
    const maps = { m: `"{{ map_entry("a", "b") }}` };
    expect(told('', { files, maps })).toEqual([]);
  });
});

describe('an open quote at the end of a line is refused', () => {
  const message = (kind: string): string =>
    `the ${kind} quote that opens here is still open at the end of its line.`;

  test.each([
    ['log-tag "x\n', `${message('double')} (main:3:9)`],
    ["    log-tag 'x\n", `${message('single')} (main:3:13)`],
    ['log-tag "x', `${message('double')} (main:3:9)`],
    ["global\nlog-tag it's\nlog-tag x\n", `${message('single')} (main:4:11)`],
    [`log-tag "{{ extraContext.a | token }}\n`, `${message('double')} (main:3:9)`],
    [`{% if extraContext.flag %}\nlog-tag "x\n{% endif %}`, `${message('double')} (main:4:9)`],
    [`{% include "s" %}\n`, `${message('double')} (snippets/s:2:5)`],
    [`{{ 'log-tag "' }}\n`, `${message('double')} (main:3:13)`],
    [
      '{% set b %}\nlog-tag "x\n{% endset %}{{ profile({name: "p", body: b}) }}',
      `${message('double')} (main:4:9)`,
    ],
    ['{{ profile({name: "p", body: "log-tag \'x"}) }}', `${message('single')} (main:3:39)`],
  ])('%s', (template, expected) => {
    expect(told(template, { snippets: { s: '# \'\nx y "z\n' } })).toEqual([expected]);
  });

  test.each(["log-tag \\' x\n", '# it\'s "\n', 'log-tag "\'" \'"\'\n', 'log-tag "a\\"b"\n'])(
    'not %s',
    (template) => {
      expect(told(template)).toEqual([]);
    },
  );
});
