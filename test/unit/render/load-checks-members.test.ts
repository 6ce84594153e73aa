import { describe, expect, test } from 'vitest';
import { HEAD, refusedProblems, type TemplateParts } from '../../support/templates.ts';

const told = (template: string, parts: TemplateParts = {}): string[] =>
  refusedProblems({
    extraContext: { maxconn: 1 },
    maps: { 'hosts.map': '' },
    ...parts,
    main: `${HEAD}${template}`,
  }).map(({ message, place }) => {
    const { source = '', line = 0, column = 0 } = place ?? {};
    return `${message} (${source}:${String(line)}:${String(column)})`;
  });

/** Something over the cells of a collection of `routes`. */
const over = (collection: string, body: string): string =>
  `{% cells x in routes.${collection} %}{% if ${body} %}{% endif %}{% endcells %}`;

describe('a member that can never exist is refused when the set is loaded', () => {
  test.each([
    [
      '{% for x in [1] %}{{ loop.indx }}{% endfor %}',
      'loop has no member "indx"; did you mean "index"? (main:3:27)',
    ],
    [
      '{{ resources.services.lst() | length }}',
      'resources.services has no member "lst"; did you mean "list"? (main:3:23)',
    ],
    [
      '{{ capabilities.haproxi }}',
      'capabilities has no member "haproxi"; did you mean "haproxy"? (main:3:17)',
    ],
    [over('hosts', 'x.hosts'), 'x has no member "hosts"; did you mean "host"? (main:3:38)'],
    [over('hosts', 'x.host.name'), 'x.host has no member "name". (main:3:43)'],
    [
      over('backends', 'x.object.nam'),
      'x.object has no member "nam"; did you mean "name"? (main:3:48)',
    ],
    [over('backends', 'x.servers[0].adress'), 'did you mean "address"?'],
    [over('backends', 'x.servers.size'), 'x.servers has no member "size". (main:3:49)'],
    [over('certificates', 'x.key'), 'x has no member "key". (main:3:45)'],
    [over('backends', '(x.servers | first).nme'), 'has no member "nme"; did you mean "name"?'],
    [
      over('backends', '(x.servers | sort_by("name") | last).nme'),
      'has no member "nme"; did you mean "name"?',
    ],
    ['{{ routes.hosts["a.example"].hots }}', 'has no member "hots"; did you mean "host"?'],
    [
      '{% for x in routes.backends %}{{ x.weight }}{% endfor %}',
      'x has no member "weight". (main:3:36)',
    ],
    [
      '{% for k, v in routes.backends %}{{ k.x }}{{ v.x }}{% endfor %}',
      'k has no member "x". (main:3:39)\nv has no member "x". (main:3:48)',
    ],
    [
      '{% for h in routes.hosts | values %}{% for p in h.exact %}{{ p.paht }}{% endfor %}{% endfor %}',
      'p has no member "paht"; did you mean "path"?',
    ],
    [
      '{% cells x in routes.hosts %}{% include "s" %}{% endcells %}',
      'x has no member "nothing". (snippets/s:1:6)',
    ],
    ['{% import "lib" as l %}{{ l.n() }}', 'l has no member "n"; did you mean "m"? (main:3:29)'],
    [
      '{% from "lib" import n %}',
      'the snippet "lib" does not define "n"; did you mean "m"? (main:3:22)',
    ],
    ['{% from "lib" import n as m %}', 'the snippet "lib" does not define "n"; did you mean "m"?'],
    ['{{ "abc".length }}', '"abc" has no member "length". (main:3:10)'],
    [
      '{% cells b in routes.backends %}{{ backend({ nam: "x" }) }}{% endcells %}',
      'backend() has no member "nam"; did you mean "name"? (main:3:46)',
    ],
    [
      '{{ profile({ name: "x", bdy: "" }) }}',
      'profile() has no member "bdy"; did you mean "body"? (main:3:25)',
    ],
    [
      '{{ path("host.map", "map") }}',
      'there is no map "host.map"; did you mean "hosts.map"? (main:3:9)',
    ],
    [
      '{{ path("x", "certs") }}',
      'there are no paths of type "certs"; did you mean "cert"? (main:3:14)',
    ],
    [
      '{{ map_entry("a", "b", "host.map") }}',
      'there is no map "host.map"; did you mean "hosts.map"? (main:3:24)',
    ],
    [
      '{% if extraContext.tls is defined %}{{ extraContext.tlz | token }}{% endif %}',
      'extraContext has no member "tlz". (main:3:53)',
    ],
    [
      '{% if extraContext.tls is defined %}{% include "tls" %}{% endif %}{% include "tlz" %}',
      'extraContext has no member "tlz". (snippets/tlz:1:17)',
    ],
    ['a{% raw %}b', 'syntax error: raw has no endraw. (main:3:'],
  ])('%s', (template, message) => {
    const snippets = {
      ...{ s: '{{ x.nothing }}', lib: '{% macro m() %}{% endmacro %}' },
      ...{ tls: '{{ extraContext.tls | token }}', tlz: '{{ extraContext.tlz | token }}' },
    };
    expect(told(template, { snippets }).join('\n')).toContain(message);
  });

  test.each([
    '{% for x in [1] %}{{ loop.index }}{{ loop.last }}{% endfor %}',
    over('hosts', 'x.host and x.exact[0].path and x.prefix.length and x.defaultBackend is defined'),
    over('backends', 'x.object.uid and x.servers[0].keywords[0] and x.mode'),
    over('certificates', 'x.pem and x.hosts and x.object.name'),
    over('hosts', 'x.newer is defined and (x.newer | default(1))'),
    '{% for s in resources.services.list() %}{% if s.any.thing %}{% endif %}{% endfor %}',
    '{% set x = routes.hosts["a"] %}{% if x.any %}{% endif %}',
    '{% for x in routes.hosts %}{% set x = {a: 1} %}{{ x.a }}{% endfor %}',
    '{% macro m(loop) %}{{ loop.any }}{% endmacro %}',
    '{% cells x in resources.services.list() key x.metadata.name %}{% if x.any %}{% endif %}{% endcells %}',
    '{% for a, b in [[1, 2]] %}{{ a }}{{ b }}{% endfor %}',
    '{% import "lib" as l %}{{ l.m() }}{{ l["m"]() }}',
    '{{ {a: 1}.a }}{% if {}[extraContext.maxconn] is defined %}{% endif %}',
    '{% raw %}{{ x.nothing.at.all }}{% endraw %}{% verbatim %}{% nothing %}{% endverbatim %}',
    '{% raw %}{% raw %}x{% endraw %}{% endraw %}',
    '{% if extraContext.proxy is defined %}log-tag {{ extraContext.proxy | quoted }}{% endif %}',
    '{% if extraContext.tls is defined and extraContext.tls.strict %}{% endif %}',
    '{% if extraContext.tls.strict is defined and extraContext.tls.strict %}{% endif %}',
    '{% if extraContext["tls"] is undefined %}{% else %}log-tag {{ extraContext.tls | quoted }}{% endif %}',
    '{% if extraContext.tls | default(false) %}log-tag {{ extraContext.tls | quoted }}{% endif %}',
    '{% if resources.gateways is defined %}{% for g in resources.gateways.list() %}{% if g.x %}{% endif %}{% endfor %}{% endif %}',
    '{% if capabilities.future is defined and capabilities.future %}{% endif %}',
    '{% if dataplane.future is defined and dataplane.future %}{% endif %}',
    '{% for h in routes.hosts | values %}{% if h.labels is defined and h.labels.x %}{% endif %}{% endfor %}',
    over('backends', 'x.servers[0].zone is defined and x.servers[0].zone'),
    '{% if extraContext.tls is defined %}{% include "tls" %}{% endif %}',
  ])('not refused: %s', (template) => {
    const snippets = {
      lib: '{% macro m() %}{% endmacro %}',
      tls: '{% if extraContext.tls %}{% endif %}',
    };
    expect(told(template, { snippets })).toEqual([]);
  });
});
