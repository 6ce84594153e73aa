import { describe, expect, test } from 'vitest';
import { parseTemplate } from '../../../src/render/language/parse-template.ts';
import { unusedSnippets } from '../../../src/render/language/unused-snippets.ts';
import type { Problem } from '../../../src/snapshot/problem.ts';
import {
  HEAD,
  engineOf,
  refusedProblems,
  renderOf,
  snapshotOf,
  type TemplateParts,
} from '../../support/templates.ts';

const refusals = (parts: TemplateParts): string[] =>
  refusedProblems(parts).map(({ message, place }) => {
    const { source = '', line = 0, column = 0 } = place ?? {};
    return `${message} (${source}:${String(line)}:${String(column)})`;
  });

const inMain = (template: string): string[] =>
  refusals({ main: `${HEAD}${template}`, extraContext: { maxconn: 1 } });

describe('a template set is refused when it is loaded', () => {
  test.each([
    ['{{ nope }}', 'unknown name "nope". (main:3:4)'],
    ['{{ pth("a", "map") }}', 'unknown name "pth"; did you mean "path"? (main:3:4)'],
    ['{{ 1 | uper }}', 'unknown filter "uper"; did you mean "upper"? (main:3:8)'],
    ['{{ 1 is evn }}', 'unknown test "evn"; did you mean "even"? (main:3:4)'],
    ['{% include "x" %}', 'unknown snippet "x". (main:3:12)'],
    [
      '{{ resources.service.list() }}',
      'resources has no member "service"; did you mean "services"? (main:3:14)',
    ],
    [
      '{{ routes.host | length }}',
      'routes has no member "host"; did you mean "hosts"? (main:3:11)',
    ],
    [
      '{{ dataplane.baseDirs }}',
      'dataplane has no member "baseDirs"; did you mean "baseDir"? (main:3:14)',
    ],
    [
      '{{ extraContext.maxcon }}',
      'extraContext has no member "maxcon"; did you mean "maxconn"? (main:3:17)',
    ],
    ['{{ "a" | text }}', 'the emitter "text" is for templates of files alone. (main:3:10)'],
    ['{% asyncEach x in [] %}{% endeach %}', 'asyncEach does not exist here: use for. (main:3:4)'],
    ['{% asyncAll x in [] %}{% endall %}', 'asyncAll does not exist here: use for. (main:3:4)'],
    ['{% block a %}{% endblock %}', 'blocks do not exist here: use include. (main:3:4)'],
    ['{% extends "x" %}', 'extends does not exist here: use include. (main:3:4)'],
    ['{{ r/a/ }}', 'regular expression literals do not exist here: use regex_match. (main:3:4)'],
    ['{% set path = 1 %}', '"path" is a global name. (main:3:4)'],
    ['{% for x in [] %}{% endfor %}{{ x }}', 'unknown name "x". (main:3:33)'],
    ['{% set n = "a" %}{% include n %}', 'include takes a name in quotes. (main:3:21)'],
    ['{% if %}', 'syntax error: unexpected token: %}. (main:3:7)'],
    ['a\n {% for x in [] %}', 'syntax error: unexpected end of'],
    ['{# a', 'syntax error: expected end of comment, got end of file. (main:3:1)'],
    ['{% nothing %}', 'syntax error: unknown block tag: nothing. (main:3:4)'],
  ])('%s', (template, message) => {
    expect(inMain(template).join('\n')).toContain(message);
  });

  test('all problems are told at once, by template, line and column', () => {
    const main = `${HEAD}{{ a }}\n{{ b | c }}`;
    const maps = { 'm.map': '{{ d }}' };
    expect(refusals({ main, maps, snippets: { s: '{{ 1 | e }}' } })).toEqual([
      'unknown name "a". (main:3:4)',
      'unknown name "b". (main:4:4)',
      'unknown filter "c". (main:4:8)',
      'unknown name "d". (maps/m.map:1:4)',
      'unknown filter "e". (snippets/s:1:8)',
    ]);
  });

  test('a configuration without default-path is refused, also when the words stand in a comment', () => {
    const [problem] = refusedProblems({ main: '{# default-path origin #}global\n' });
    expect(problem?.reason).toBe('DefaultPathMissing');
    expect(refusals({ main: '{% include "g" %}', snippets: { g: HEAD } })).toEqual([]);
  });

  test.each([
    [
      '{% set x %}{% cells b in routes.backends %}{% endcells %}{% endset %}',
      'inside a captured block',
    ],
    [
      '{% macro m() %}{% cells b in routes.backends %}{% endcells %}{% endmacro %}',
      'inside a macro',
    ],
    [
      '{% filter indent %}{% cells b in routes.backends %}{% endcells %}{% endfilter %}',
      'captured block',
    ],
    [
      '{% cells a in routes.backends %}{% cells b in routes.hosts %}{% endcells %}{% endcells %}',
      'inside cells',
    ],
    [
      '{% set y = 1 %}{% cells b in routes.backends %}{% set y = 2 %}{% endcells %}',
      'cannot set "y"',
    ],
    ['{% set y = 1 %}{% cells b in routes.backends %}{{ y }}{% endcells %}', 'unknown name "y"'],
    ['{{ backend({}) }}', 'backend() can only be called by cells'],
    [
      '{% section "a" %}{% cells b in routes.backends %}{{ backend({}) }}{% endcells %}{% endsection %}',
      'top level',
    ],
    ['{% section "a" %}{{ profile({}) }}{% endsection %}', 'profile() can only be printed'],
    [
      '{% section "a" %}{% section "b" %}{% endsection %}{% endsection %}',
      'section can only stand',
    ],
    [
      '{% cells a in routes.backends %}{{ backend({}) }}{% endcells %}{% cells b in routes.backends %}{{ backend({}) }}{% endcells %}',
      'two cells tags declare backends',
    ],
  ])('misplaced: %s', (template, message) => {
    expect(inMain(template).join('\n')).toContain(message);
  });

  test('a snippet is checked in each place it is included from', () => {
    const snippets = { s: '{{ x }}' };
    expect(refusals({ main: `${HEAD}{% set x = 1 %}{% include "s" %}`, snippets })).toEqual([]);
    expect(refusals({ main: `${HEAD}{% include "s" %}`, snippets })).toEqual([
      'unknown name "x". (snippets/s:1:4)',
    ]);
    expect(refusals({ main: HEAD, snippets })).toEqual([]);
  });

  test('names that may be undefined need not be known', () => {
    expect(inMain('{{ x | default(1) }}{{ y is defined }}{{ z | coalesce(w, 1) }}')).toEqual([]);
  });
});

describe('a snippet that nothing includes', () => {
  const HOOKS = `${HEAD}{% include "frontend-http-*" %}\n{% include "global-*" %}\n`;
  const warnings = (snippets: Readonly<Record<string, string>>): readonly Problem[] =>
    renderOf(engineOf({ main: HOOKS, snippets }), snapshotOf([])).problems;

  test('is a warning that names the nearest hook', () => {
    const [first, second, ...more] = warnings({
      'fronted-http-600-deny': '    # x\n',
      'global-600-x': '    # x\n{% include "mine" %}',
      mine: '    # y\n',
      other: '    # z\n',
    });
    expect(more).toEqual([]);
    expect(first).toMatchObject({
      severity: 'warning',
      reason: 'SnippetNotIncluded',
      message:
        'The snippet fronted-http-600-deny is included by nobody, so it prints nothing; the nearest hook is frontend-http.',
      place: { source: 'snippets/fronted-http-600-deny' },
    });
    expect(second?.message).toBe('The snippet other is included by nobody, so it prints nothing.');
  });

  test('is none when macros of it are imported, or when it comes with a library', () => {
    const root = parseTemplate('x', 'x');
    expect(
      warnings({
        'global-600-x': '{% from "lib" import m %}{{ m() }}',
        lib: '{% macro m() %}{% endmacro %}',
      }),
    ).toEqual([]);
    const ours = { name: 'spare', source: 'libraries/base: spare.njk', root };
    const absent = { name: 'gone', source: 'snippets/gone', root: undefined };
    expect(unusedSnippets([ours, absent], new Set())).toEqual([]);
  });
});
