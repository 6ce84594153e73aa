import { describe, expect, test } from 'vitest';
import { PersistentMap } from '../../../src/cells/persistent-map.ts';
import type { Problem } from '../../../src/snapshot/problem.ts';
import {
  EMPTY_SNAPSHOT,
  HEAD,
  backendModel,
  configMap,
  engineOf,
  renderOf,
  runSteps,
  server,
  snapshotOf,
  textOf,
  type TemplateParts,
} from '../../support/templates.ts';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import type { BackendModel } from '../../../src/routing/model.ts';
import type { Render } from '../../../src/render/render.ts';

const render = (parts: TemplateParts, objects: readonly KubeObject[] = []): Render =>
  renderOf(engineOf({ main: HEAD, ...parts }), snapshotOf(objects));

const problems = (
  parts: TemplateParts,
  objects: readonly KubeObject[] = [],
): readonly Problem[] => {
  const result = runSteps(engineOf({ main: HEAD, ...parts }), snapshotOf(objects));
  return result.ok ? [] : result.failure.problems;
};

const EACH = 'resources.configmaps.list() key one.metadata.name';

describe('maps', () => {
  test('are made of their entries, sorted by key', () => {
    const made = render({
      maps: { 'm.map': '{{ map_entry("b", 2) }}\n{{ map_entry("a", "one two") }}\n' },
    });
    expect(textOf(made, 'maps/m.map')).toBe('a one two\nb 2\n');
    expect(made.plan.maps.get('maps/m.map')).toMatchObject({ ordered: false, size: 14 });
  });

  test('that are ordered keep the order of their templates and cells, and repeated keys', () => {
    const objects = [configMap('b', { k: 'x' }), configMap('a', { k: 'y' })];
    const template = `{% cells one in ${EACH} %}{{ map_entry(one.data.k, one.metadata.name) }}{{ map_entry("same", 1) }}{% endcells %}{{ map_entry("first", 0) }}`;
    const made = render({ orderedMaps: { 'm.map': template } }, objects);
    expect(textOf(made, 'maps/m.map')).toBe('first 0\ny a\nsame 1\nx b\nsame 1\n');
  });

  test('take entries from other templates by name', () => {
    const made = render({ main: `${HEAD}{{ map_entry("a", 1, "m.map") }}`, maps: { 'm.map': '' } });
    expect(textOf(made, 'maps/m.map')).toBe('a 1\n');
  });

  test('exist without entries', () => {
    expect(textOf(render({ maps: { 'm.map': '' } }), 'maps/m.map')).toBe('');
  });

  test('refuse one key with two values, naming both objects; the same entry twice is fine', () => {
    const template = `{% cells one in ${EACH} %}{{ map_entry("key", one.data.v) }}{% endcells %}`;
    const same = [configMap('a', { v: '1' }), configMap('b', { v: '1' })];
    const other = [configMap('a', { v: '1' }), configMap('b', { v: '2' })];
    expect(problems({ maps: { 'm.map': template } }, same)).toEqual([]);
    expect(problems({ maps: { 'm.map': template } }, other)).toMatchObject([
      {
        reason: 'DeclaredTwice',
        message:
          'in m.map the key "key" is declared differently by ConfigMap shop/a and ConfigMap shop/b.',
      },
    ]);
  });

  test.each([
    ['{{ map_entry("a b", 1) }}', 'white space'],
    ['{{ map_entry("#a", 1) }}', 'comment'],
    ['{{ map_entry("a", "b\\nc 1") }}', 'control character'],
    ['{{ map_entry("a", 1, "n" ~ ".map") }}', 'there is no map "n.map"; did you mean "m.map"?'],
    ['text', 'prints text'],
  ])('refuse %s', (template, message) => {
    expect(problems({ maps: { 'm.map': template } })[0]?.message).toContain(message);
  });
});

describe('files and certificates', () => {
  const pem = '-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n';

  test('come from templates and from functions', () => {
    const objects = [configMap('a', { pem, text: 'any "text"\n\u0000' })];
    const main = `${HEAD}{% cells one in ${EACH} %}
{{ file("x.txt", one.data.text, {reloadOnPush: true}) }}{{ certificate("c", one.data.pem) }}
{{ crt_list("all.list", [{certificate: "c", options: ["alpn", "h2"], hosts: ["*.a.example", "!b.a.example"]}]) }}
{% endcells %}
# {{ path("c", "cert") }} {{ path("all.list", "crt-list") }} {{ path("x.txt", "file") }}`;
    const files = { '500.http': 'HTTP/1.0 500\r\n' };
    const certificates = { own: '{{ resources.configmaps.get("shop", "a").data.pem | pem }}' };
    const made = render({ main, files, certificates }, objects);
    expect(textOf(made)).toContain('# certs/c.pem certs/all.list general/x.txt\n');
    expect(textOf(made, 'general/x.txt')).toBe('any "text"\n\u0000');
    expect(textOf(made, 'general/500.http')).toBe('HTTP/1.0 500\r\n');
    expect(textOf(made, 'certs/c.pem')).toBe(pem);
    expect(textOf(made, 'certs/own.pem')).toBe(pem);
    expect(textOf(made, 'certs/all.list')).toBe('certs/c.pem [alpn h2] *.a.example !b.a.example\n');
    const kinds = [...made.plan.files.values()].map(({ path, kind, reloadOnChange }) => [
      path,
      kind,
      reloadOnChange,
    ]);
    expect(kinds).toEqual([
      ['certs/c.pem', 'cert', true],
      ['certs/own.pem', 'cert', true],
      ['general/500.http', 'general', true],
      ['general/x.txt', 'general', true],
    ]);
    const line = 'certs/c.pem [alpn h2] *.a.example !b.a.example';
    const [list] = made.plan.crtLists.values();
    expect(list).toMatchObject({ path: 'certs/all.list', first: line, size: line.length + 1 });
    expect([...(list?.lines.values() ?? [])]).toMatchObject([
      {
        certificate: 'certs/c.pem',
        options: ['alpn', 'h2'],
        filters: ['*.a.example', '!b.a.example'],
      },
    ]);
  });

  test.each([
    ['{{ file("../x", "a") }}', 'file name'],
    ['{{ file("a/b", "a") }}', 'slash'],
    ['{{ file(".x", "a") }}', 'file name'],
    ['{{ certificate("c", "no pem") }}', 'PEM'],
    ['{{ crt_list("l", [{certificate: "c", hosts: ["a b"]}]) }}', 'no host name'],
    ['{{ crt_list("l", [{certificate: "c", options: ["]"]}]) }}', 'no plain word'],
    ['{{ crt_list("l", [{certificates: "c"}]) }}', 'did you mean "certificate"?'],
    ['{{ path("x", "map" ~ "s") }}', 'did you mean "map"?'],
    [
      '{{ file("a", "1") }}{% cells x in [1] key "k" %}{{ file("a", "2") }}{% endcells %}',
      'declared differently by a template and the cells at main:3',
    ],
  ])('refuse %s', (template, message) => {
    expect(problems({ main: `${HEAD}${template}` })[0]?.message).toContain(message);
  });
});

describe('backends', () => {
  const main = `${HEAD}{% cells b in routes.backends %}
{% set body %}
    # by {{ b.object.name | comment }}
    http-request deny if { path {{ b.object.uid | aclPattern }} }
{% endset %}
{{ backend({ name: b.name, mode: b.mode, profile: "p", balance: "hdr(host)", hashType: "consistent", servers: b.servers, body: body, dynamic: false, structuralReason: "why" }) }}
{% endcells %}`;

  test('with a default-server line take no servers at run time, which would not inherit it', () => {
    const model = backendModel('web', [server('s', '10.0.0.1', 80)]);
    const backends = PersistentMap.from([['key', model] as const]);
    const declared = `${HEAD}{% set common %}
    default-server check
{% endset %}
{{ profile({ name: "p", mode: "http", body: common }) }}
{% cells b in routes.backends %}
{% set own %}
    default-server maxconn 7
{% endset %}
{{ backend({ name: b.name, profile: "p", servers: b.servers, body: own }) }}
{% endcells %}`;
    const result = runSteps(
      engineOf({ main: declared }, () => ({ hosts: PersistentMap.EMPTY, backends })),
      EMPTY_SNAPSHOT,
    );
    if (!result.ok) throw new Error(JSON.stringify(result.failure.problems));
    const { plan } = result.render;
    expect(plan.profiles.get('p')).toMatchObject({ mode: 'http', defaultServer: true });
    expect(plan.backends.get('web')).toMatchObject({
      ...{ dynamic: false, bare: false },
      structuralReason: 'its default-server line does not count for servers added at run time',
    });
  });

  const renderBackends = (...models: readonly BackendModel[]) => {
    const backends = PersistentMap.from(models.map((one, index) => [`key-${index}`, one]));
    return runSteps(
      engineOf({ main }, () => ({ hosts: PersistentMap.EMPTY, backends })),
      EMPTY_SNAPSHOT,
    );
  };

  const structureOf = (...models: readonly BackendModel[]): string | undefined => {
    const result = renderBackends(...models);
    return result.ok ? [...result.render.plan.backends.values()][0]?.structure : undefined;
  };

  test('record what they print', () => {
    const result = renderBackends(
      backendModel('web', [{ ...server('s', '::1', 80), keywords: ['check'] }]),
    );
    if (!result.ok) throw new Error('fails');
    expect(textOf(result.render)).toContain(`backend web from p
    mode http
    balance hdr(host)
    hash-type consistent
    # by web
    http-request deny if { path 'uid-web' }
    server s [::1]:80 weight 1 check

`);
    expect(result.render.plan.backends.get('web')).toMatchObject({
      ...{ name: 'web', mode: 'http', profile: 'p', balance: 'hdr(host)', hashType: 'consistent' },
      ...{ dynamic: false, structuralReason: 'why' },
      servers: [
        { name: 's', address: '::1', port: 80, weight: 1, state: 'ready', keywords: ['check'] },
      ],
    });
  });

  test('take servers that server() makes, named after address and port unless they say otherwise', () => {
    const made = render(
      {
        main: `${HEAD}{% cells one in ${EACH} %}
{{ backend({ name: one.metadata.name, profile: "p", servers: [
  server({ address: one.data.address, port: 80 }),
  server({ address: "::1", port: 81, name: "own", weight: 5, state: "maint", keywords: ["check"] })
] }) }}
{% endcells %}`,
      },
      [configMap('web', { address: '10.0.0.1' })],
    );
    expect(textOf(made)).toContain('    server 10.0.0.1_80 10.0.0.1:80 weight 1\n');
    expect(textOf(made)).toContain('    server own [::1]:81 weight 5 disabled check\n');
  });

  test('keep their structure when servers or comments change', () => {
    const one = backendModel('web', []);
    const servers = [server('s', '10.0.0.1')];
    const otherComment = { ...one, object: { ...one.object, name: 'other' } };
    const otherRule = { ...one, object: { ...one.object, uid: 'other' } };
    expect(structureOf({ ...one, servers })).toBe(structureOf(one));
    expect(structureOf(otherComment)).toBe(structureOf(one));
    expect(structureOf(otherRule)).not.toBe(structureOf(one));
  });

  test.each<[string, Partial<ReturnType<typeof server>>]>([
    ['is no IPv4 or IPv6 address', { address: 'evil.example' }],
    ['is no whole number from 1 to 65535', { port: 0 }],
    ['is no whole number from 0 to 256', { weight: 257 }],
    ['is longer than 127', { name: 'x'.repeat(128) }],
    ['holds a character other', { name: 'a b' }],
    ['control character', { name: 'a\nb' }],
    ['is no plain word', { keywords: ['check inter 1'] }],
    ['is neither "ready" nor "maint"', { state: 'drain' }],
  ])('refuse a server that %s', (message, part) => {
    const result = renderBackends(backendModel('web', [{ ...server('s', '10.0.0.1'), ...part }]));
    expect(result.ok ? '' : result.failure.problems[0]?.message).toContain(message);
  });

  test('of one name from two cells fail, naming both objects', () => {
    const other = { ...backendModel('web', []), object: { ...backendModel('b', []).object } };
    const result = renderBackends(backendModel('web', []), other);
    expect(result.ok ? '' : result.failure.problems[0]?.message).toBe(
      'the backend "web" is declared differently by Ingress shop/web and Ingress shop/b.',
    );
  });

  test('refuse a body that no emitter guards, and text beside them', () => {
    const bodies = (body: string, text = ''): string => {
      const template = `${HEAD}{% cells b in routes.backends %}${text}{{ backend({ name: b.name, profile: "p", body: ${body} }) }}{% endcells %}`;
      const backends = PersistentMap.from([['a', backendModel('a', [])]]);
      const engine = engineOf({ main: template }, () => ({ hosts: PersistentMap.EMPTY, backends }));
      const result = runSteps(engine, EMPTY_SNAPSHOT);
      return result.ok ? '' : (result.failure.problems[0]?.message ?? '');
    };
    expect(bodies('b.name')).toContain('has to be captured');
    expect(bodies('""', 'text')).toContain('print nothing but backend()');
  });
});

test('a status goes to the object', () => {
  const main = `${HEAD}{% cells one in ${EACH} %}{{ status(one, {ready: true, text: "x"}) }}{% endcells %}`;
  expect(render({ main }, [configMap('a', {})]).statuses).toEqual([
    {
      object: expect.objectContaining({ kind: 'ConfigMap', name: 'a' }) as unknown,
      status: { ready: true, text: 'x' },
    },
  ]);
});
