import { describe, expect, test } from 'vitest';
import { configMap, failureOf, printed, service } from '../../support/templates.ts';

const objects = [configMap('web', { text: 'blue', lines: 'a\nb', list: ['b', 'a'], number: 7 })];
const ONE = 'resources.configmaps.get("shop", "web")';

describe('what is printed', () => {
  test.each([
    ['{{ 1 + 2 }}', '3'],
    ['{{ "a" ~ 1 ~ true }}', 'a1true'],
    ['{{ ["b", "a"] | sort | join(",") }}', 'a,b'],
    ['{% for k, v in {b: 1, a: 2} %}{{ k | token }}={{ v }};{% endfor %}', 'a=2;b=1;'],
    ['{% for x in [1, 2] %}{{ loop.index }}/{{ loop.length }} {% endfor %}', '1/2 2/2 '],
    ['{% for x in [] %}x{% else %}none{% endfor %}', 'none'],
    ['{% for a, b in [[1, 2]] %}{{ a }}{{ b }}{% endfor %}', '12'],
    ['{% switch 2 %}{% case 1 %}a{% case 2 %}b{% default %}c{% endswitch %}', 'b'],
    ['{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}', '2'],
    ['{% set x %}a{{ 1 }}{% endset %}{{ x }}', 'a1'],
    [
      '{% macro m(a, b="y") %}{{ a }}{{ b }}{% endmacro %}{{ m("x") }}{{ m(b="2", a="1") }}',
      'xy12',
    ],
    ['{% macro m() %}<{{ caller(1) }}>{% endmacro %}{% call(x) m() %}{{ x }}{% endcall %}', '<1>'],
    ['{% filter indent(2, true) %}a{% endfilter %}', '  a'],
    ['{% raw %}{{ x }}{% endraw %}', '{{ x }}'],
    [
      '{{ 7 // 2 }} {{ 7 % 4 }} {{ 2 ** 3 }} {{ -1 }} {{ 3 > 2 }} {{ not 1 }}',
      '3 3 8 -1 true false',
    ],
    ['{{ "a" in ["a"] }} {{ "x" in {x: 1} }} {{ "b" in "abc" }}', 'true true true'],
    ['{{ [] or "empty" }}{% if {} %}x{% endif %}', 'empty'],
  ])('%s', (template, text) => {
    expect(printed(template)).toBe(`${text}\n`);
  });

  test('data prints through an emitter, and numbers of data as they are', () => {
    expect(printed(`{{ ${ONE}.data.text | quoted }} {{ ${ONE}.data.number }}`, { objects })).toBe(
      "'blue' 7\n",
    );
  });

  test('look-ups by namespace, by index and as a list', () => {
    const all = [
      ...objects,
      service('one', 'red'),
      service('two', 'red'),
      service('three', 'blue'),
    ];
    const template =
      '{{ resources.services.list() | length }}{{ resources.services.fetch("shop", "red") | length }}' +
      '{{ resources.services.fetch("shop") | length }}{{ resources.services.fetch("x") | length }}';
    expect(printed(template, { objects: all })).toBe('3230\n');
  });

  test('includes see the names around them, and keep their own assignments', () => {
    const snippets = { inner: '{{ x }}{% set x = 2 %}{{ x }}' };
    expect(printed('{% set x = 1 %}{% include "inner" %}{{ x }}', { snippets })).toBe('121\n');
  });

  test('a name with * includes all snippets that match, in the order of their names', () => {
    const snippets = { 'h-2': 'two ', 'h-1': 'one ', other: 'no' };
    const template = '- {% include "h-*" %}{% include "none-*" %}.';
    expect(printed(template, { snippets })).toBe('- one two .\n');
  });

  test('a snippet of a hook ends its line, so that it never swallows the next one', () => {
    const snippets = {
      'h-1': '    # hello',
      'h-2': '    two\n',
      'h-3': '',
      'h-4': '{% if 0 %}x{% endif %}',
    };
    const template = 'first\n{% include "h-*" %}\n    bind :80\n';
    expect(printed(template, { snippets })).toBe('first\n    # hello\n    two\n    bind :80\n');
    const captured = '{% set x %}\n{% include "h-*" %}\n{% endset %}\n{{ x }}last';
    expect(printed(captured, { snippets })).toBe('    # hello\n    two\nlast\n');
  });

  test('a snippet that is included by its name prints as it is', () => {
    const snippets = { one: 'a', 'h-1': 'b' };
    expect(printed('{% include "one" %}{% include "h-*" %}c', { snippets })).toBe('abc\n');
  });

  test('macros are imported from snippets', () => {
    const snippets = { lib: '{% macro m(x) %}[{{ x }}]{% endmacro %}' };
    const template = '{% from "lib" import m %}{% import "lib" as l %}{{ m(1) }}{{ l.m(2) }}';
    expect(printed(template, { snippets })).toBe('[1][2]\n');
  });
});

test('group_by takes linear time for one large group', () => {
  const services = Array.from({ length: 40_000 }, (_, index) => service(`s${index}`, 'red'));
  const all = 'resources.services.list() | group_by("metadata.namespace") | values | first';
  const startedAt = performance.now();
  expect(printed(`{{ ${all} | length }}`, { objects: services })).toBe('40000\n');
  expect(performance.now() - startedAt).toBeLessThan(3_000);
});

describe('undefined', () => {
  test.each([
    [`{{ ${ONE}.data.nothing | default("x") }}`, 'x'],
    [`{{ resources.configmaps.get("no", "no").a.b | default("x") }}`, 'x'],
    [`{{ ${ONE}.data.no | coalesce(${ONE}.data.neither, "x") }}`, 'x'],
    [`{{ ${ONE}.data.no is defined }} {{ nobody is undefined }}`, 'false true'],
    [`{{ none | default("x") }} {{ "" | default("x") }}{{ "" | default("y", true) }}`, 'x y'],
  ])('is allowed in %s', (template, text) => {
    expect(printed(template, { objects })).toBe(`${text}\n`);
  });

  test('is an error elsewhere, with place, expression and the nearest name', () => {
    expect(failureOf(`x\n  {{ ${ONE}.data.txt | quoted }}`, objects)).toMatchObject({
      message: expect.stringContaining('has no member "txt"; did you mean "text"?') as string,
      place: { source: 'files/out', line: 4, column: 51 },
      field: `${ONE}.data.txt`,
    });
  });

  test('names the object that was looked at, also where no cell is made for one', () => {
    const all = [configMap('web', { text: 'blue' }), configMap('zoo', {})];
    const loop = '{% for one in resources.configmaps.list() %}';
    const expected = { kind: 'ConfigMap', namespace: 'shop', name: 'zoo' };
    for (const body of [
      '{{ one.data.text | quoted }}',
      '{% for x in [1] %}{{ one.data.text | quoted }}{% endfor %}',
      '{% set copy = one %}{{ copy.data.text | quoted }}',
      '{{ (one.data.text | default("\\n")) | quoted }}',
    ]) {
      const failure = failureOf(`${loop}${body}{% endfor %}`, all);
      expect([body, failure.object]).toMatchObject([body, expected]);
      expect(failure.message).not.toContain('zoo');
      expect(failure.message).toMatch(/[.?]$/);
    }
    expect(failureOf('{% for x in [1] %}{{ x.y }}{% endfor %}', all).object).toBeUndefined();
  });

  test.each([
    '{{ "x".length }}',
    '{{ {}.toString }}',
    '{{ {}.constructor }}',
    '{{ [].push }}',
    '{{ range.constructor }}',
    '{{ routes.constructor }}',
    '{{ extraContext["__proto__"] }}',
    '{{ [1].constructor.constructor }}',
  ])('is every member that data does not have: %s', (template) => {
    try {
      expect(failureOf(template).message).toContain('is undefined');
    } catch (error: unknown) {
      expect(String(error)).toContain('has no member');
    }
  });

  test('own members are data, whatever their name', () => {
    const template =
      '{% set x = {"__proto__": 1, constructor: 2} %}{{ x["__proto__"] }}{{ x.constructor }}';
    expect(printed(template)).toBe('12\n');
  });
});

describe('a template fails', () => {
  test.each([
    [`{{ ${ONE}.data.text }}`, 'printed without an emitter'],
    [`{{ "x" ~ ${ONE}.data.text }}`, 'printed without an emitter'],
    [`{{ ["x", ${ONE}.data.text] | join(",") }}`, 'printed without an emitter'],
    [`{{ ["x", "y"] | join(${ONE}.data.text) }}`, 'printed without an emitter'],
    [`{{ ${ONE}.data.text | upper }}`, 'printed without an emitter'],
    [`{{ ${ONE}.data.lines | quoted }}`, 'control character at position 2'],
    [`{{ ${ONE}.data.text() }}`, 'cannot be called'],
    [`{{ ${ONE}.data.list | first }}`, 'printed without an emitter'],
    ['{{ none }}', 'cannot be printed'],
    ['{{ [1] }}', 'cannot be printed'],
    ['{{ 1 / 0 }}', 'cannot be printed'],
    ['{{ "a" < 1 }}', 'cannot be compared'],
    ['{{ "a" - 1 }}', 'is not a number'],
    ['{% for x in 1 %}{% endfor %}', 'cannot go over'],
    ['{{ fail("no way") }}', 'no way'],
    ['{{ "(" | regex_match("(") }}', 'not a regular expression'],
    ['{{ resources.services.fetch("a", "b", "c") | length }}', 'takes at most 2 keys'],
    ['{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}', 'nest deeper'],
    ['{{ range(1000000) | length }}', 'more than'],
  ])('%s', (template, message) => {
    expect(failureOf(template, objects).message).toContain(message);
  });

  test.each([
    [
      'maxconn {{ extraContext.maxconn }}',
      'extraContext.maxconn is a string, not a number',
      'maxconn',
    ],
    [
      '{{ extraContext.time.client | token }}',
      'extraContext.time is a string, not a mapping',
      'time',
    ],
    ['{{ extraContext.list | token }}', 'extraContext.list is a list, not a string', 'list'],
    ['{{ (extraContext.list | default("x")) | token }}', 'extraContext.list is a list, ', 'list'],
    [
      '{{ extraContext.maxconn | token }}',
      "cannot print the configuration's extraContext.maxconn",
      'maxconn',
    ],
  ])(
    'by a setting, and tells that the configuration is to be corrected: %s',
    (template, message, name) => {
      const extraContext = { maxconn: 'lots of it', time: 'soon', list: [1] };
      const failure = failureOf(template, [], { extraContext });
      expect(failure.message).toContain(message);
      expect(failure.field).toBe(`extraContext.${name}`);
      expect(failure.nextStep).toContain(
        `Correct spec.templatingSettings.extraContext.${name} of the HAProxyTemplateConfig`,
      );
      expect(failure.place).toMatchObject({ source: 'files/out', line: 3 });
    },
  );

  test('by a setting that does not exist, with the nearest one', () => {
    const extraContext = { maxconn: 1, timeouts: { client: '5s' } };
    const nested = failureOf('{{ extraContext.timeouts.clent | token }}', [], { extraContext });
    expect(nested.message).toContain('did you mean "client"?');
  });

  test('without repeating the value', () => {
    const secret = [configMap('web', { text: 'hunter2\n' })];
    for (const filter of ['quoted', 'token', 'to_int', 'b64decode', 'mapKey', 'regex', 'pem']) {
      expect(JSON.stringify(failureOf(`{{ ${ONE}.data.text | ${filter} }}`, secret))).not.toContain(
        'hunter2',
      );
    }
  });
});
