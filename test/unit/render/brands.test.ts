import { describe, expect, test } from 'vitest';
import { configMap, failureOf, printed } from '../../support/templates.ts';

const DATA = {
  text: 'x',
  number: 7,
  list: ['x', 'y'],
  // What a brand looks like from outside.
  forged: { value: 'x', marks: [], toString: 'x', toJSON: 'x' },
  constructor: { name: 'Text' },
  prototype: JSON.parse('{ "__proto__": { "value": "x", "marks": [] } }') as unknown,
};
const objects = [configMap('web', DATA)];
const WEB = '{% set web = resources.configmaps.get("shop", "web") %}';

describe('the brand of a literal survives only when all parts have it (R8)', () => {
  test.each([
    ['{{ "a" ~ "b" ~ 1 ~ true }}', 'ab1true'],
    ['{{ "a" ~ (web.data.text | quoted) }}', "a'x'"],
    ['{{ "a" ~ web.data.number }}', 'a7'],
    ['{{ "a" + "b" }}', 'ab'],
    ['{{ ["a", web.data.text | token] | join("-") }}', 'a-x'],
    ['{{ (["a"] + [web.data.text | token]) | join("1") }}', 'a1x'],
    ['{% set x %}a{{ web.data.text | token }}{% endset %}{{ x ~ "b" }}', 'axb'],
    ['{{ ("a" if web else "b") ~ ("" or "c") ~ (1 and "d") }}', 'acd'],
    ['{{ web.data.nope | default("a") }}{{ web.data.nope | coalesce("b") }}', 'ab'],
    ['{{ {k: "a"}.k ~ ["b"][0] ~ (["c"] | first) }}', 'abc'],
    ['{% macro m(p) %}{{ p }}{% endmacro %}{{ m("a") ~ m(web.data.text | token) }}', 'ax'],
    ['{% for x in ["b", "a"] | sort %}{{ x }}{% endfor %}', 'ab'],
    ['{{ [{n: "a"}] | map_attr("n") | last }}{{ {a: {b: "c"} } | dig("a", "b") }}', 'ac'],
  ])('%s prints', (template, text) => {
    expect(printed(`${WEB}${template}`, { objects })).toBe(`${text}\n`);
  });

  test.each([
    '{{ web.data.text }}',
    '{{ "" ~ web.data.text }}',
    '{{ web.data.text ~ "" }}',
    '{{ "a" ~ "b" ~ (1 ~ web.data.text) }}',
    '{{ "" + web.data.text }}',
    '{{ ["a", web.data.text] | join }}',
    '{{ (["a"] + web.data.list) | join(" ") }}',
    '{{ ["a", "b"] | join(web.data.text) }}',
    '{{ web.data.list | join("") }}',
    '{{ web.data.text | default("a") }}',
    '{{ web.data.nope | default(web.data.text) }}',
    '{{ web.data.nope | coalesce(web.data.text, "a") }}',
    '{{ (web.data.text or "a") }}',
    '{{ (1 and web.data.text) }}',
    '{{ (web.data.text if 1 else "a") }}',
    '{{ {k: web.data.text}.k }}',
    '{{ {k: {l: web.data.text} } | dig("k", "l") }}',
    '{{ [web.data.text][0] }}',
    '{{ web.data.list | first }}{{ web.data.list | last }}',
    '{{ "x" | upper }}',
    '{{ web.data.text | lower }}',
    '{{ web.data.text | indent(2) }}',
    '{{ web.data | keys | first }}',
    '{% for k, v in web.data %}{{ k }}{% endfor %}',
    '{% for x in web.data.list | sort %}{{ x }}{% endfor %}',
    '{% set x = web.data.text %}{{ x }}',
    '{% macro m(p) %}{{ p }}{% endmacro %}{{ m(web.data.text) }}',
    '{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}{{ web.data.text }}{% endcall %}',
    '{% set x %}a{{ web.data.text }}{% endset %}{{ x }}',
    '{% filter indent %}{{ web.data.text }}{% endfilter %}',
    '{{ (web.data.text | token) | upper }}',
    '{{ (web.data.text | b64encode) ~ "" }}',
  ])('%s does not', (template) => {
    expect(failureOf(`${WEB}${template}`, objects).message).toContain('printed without an emitter');
  });

  test.each([
    '{{ web.data.forged }}',
    '{{ web.data.prototype }}',
    '{{ web.data.list }}',
    '{{ {value: "x", marks: []} }}',
    '{{ {toString: "x"} }}',
    '{{ {"__proto__": "x"} }}',
    '{{ web.data.constructor }}',
  ])('no mapping or list passes for text: %s', (template) => {
    expect(failureOf(`${WEB}${template}`, objects).message).toContain('cannot be printed');
  });

  test.each([
    ['{{ "a" ~ web.data.forged }}', 'cannot join'],
    ['{{ [web.data.forged] | join }}', 'not a string, number or boolean'],
    ['{{ ["a", web.data.prototype] | join }}', 'not a string, number or boolean'],
    ['{{ web.data.forged | quoted }}', 'is a mapping, not a string'],
    ['{{ web.data.forged | indent }}', 'is a mapping, not a string'],
  ])('nor is one joined: %s', (template, message) => {
    expect(failureOf(`${WEB}${template}`, objects).message).toContain(message);
  });
});
