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
    expect(printed('{% include "h-*" %}{% include "none-*" %}.', { snippets })).toBe('one two .\n');
  });

  test('macros are imported from snippets', () => {
    const snippets = { lib: '{% macro m(x) %}[{{ x }}]{% endmacro %}' };
    const template = '{% from "lib" import m %}{% import "lib" as l %}{{ m(1) }}{{ l.m(2) }}';
    expect(printed(template, { snippets })).toBe('[1][2]\n');
  });
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
      place: { source: 'main', line: 4, column: 51 },
      field: `${ONE}.data.txt`,
    });
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

  test('without repeating the value', () => {
    const secret = [configMap('web', { text: 'hunter2\n' })];
    for (const filter of ['quoted', 'token', 'to_int', 'b64decode', 'mapKey', 'regex', 'pem']) {
      expect(JSON.stringify(failureOf(`{{ ${ONE}.data.text | ${filter} }}`, secret))).not.toContain(
        'hunter2',
      );
    }
  });
});
