import { beforeAll, describe, expect, test } from 'vitest';
import type { Render, TemplateEngine } from '../../../src/render/render.ts';
import type { IndexedSnapshot } from '../../../src/snapshot/apply-batch.ts';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import { changed, ingress, service, slice, snapshotOf } from '../../support/objects.ts';
import { runSteps } from '../../support/templates.ts';
import { libraryEngine, renderAll, textsOf } from '../../support/rendered.ts';

const objects: readonly KubeObject[] = [
  ingress('a', { rules: [['a.example.com', '/', 'web:80']] }),
  ingress('b', { rules: [['b.example.com', '/', 'web:80']], tls: [['', 'b.example.com']] }),
  service('web'),
  service('other'),
  slice('web', { endpoints: ['10.0.0.1', '10.0.0.2'] }),
  slice('other', { endpoints: ['10.0.1.1'] }),
];

let engine: TemplateEngine;
let before: IndexedSnapshot;
let first: Render;

beforeAll(async () => {
  engine = await libraryEngine();
  before = snapshotOf(objects);
  first = renderAll(engine, before);
});

const coreOf = ({ plan }: Render): unknown =>
  plan.sections.filter(({ kind }) => kind !== 'backends');

const changedFiles = (after: Render): string[] => {
  const [old, now] = [textsOf(first), textsOf(after)];
  return [...new Set([...Object.keys(old), ...Object.keys(now)])]
    .filter((path) => old[path] !== now[path])
    .sort();
};

describe('sections', () => {
  test('R3: all have names, so that the reason of a reload says where the change is', async () => {
    const frontend = 'frontend mine from haptic-frontend\n    bind 127.0.0.1:8099\n';
    const config: KubeObject = {
      apiVersion: 'haproxy-haptic.org/v1alpha1',
      kind: 'HAProxyTemplateConfig',
      metadata: { namespace: 'default', name: 'haptic' },
      spec: {
        templateSnippets: {
          'frontends-600-mine': { template: frontend },
          'backends-600-mine': { template: 'backend mine from haptic-base\n' },
        },
      },
    };
    const secure = await libraryEngine({ config, defaultPem: PEM });
    const sections = renderAll(secure, before).plan.sections;
    expect(sections.map(({ name }) => name)).toStrictEqual([
      'global',
      'defaults',
      'sections',
      'stats',
      'frontend-http',
      'frontend-https',
      'frontends',
      'unavailable',
      'haptic-route',
      'backends',
      'own-backends',
    ]);
    const plain = renderAll(await libraryEngine({ defaultPem: PEM }), before).plan.sections;
    const differing = sections.filter(
      ({ name, digest }) => plain.find((other) => other.name === name)?.digest !== digest,
    );
    expect(differing.map(({ name }) => name)).toStrictEqual(['frontends', 'own-backends']);
  });
});

describe('settings of a wrong type', () => {
  test.each<[string, Readonly<Record<string, unknown>>]>([
    ['maxconn', { maxconn: 'lots' }],
    ['hardStopAfter', { hardStopAfter: ['10m'] }],
    ['timeouts', { timeouts: 5 }],
    ['balance', { balance: 7 }],
  ])('%s: the configuration is to be corrected, not the library', async (name, extraContext) => {
    const wrong = await libraryEngine({ overrides: { extraContext } });
    const result = runSteps(wrong, before);
    const [problem] = result.ok ? [] : result.failure.problems;
    expect(problem?.message).toContain(`the configuration's extraContext.${name} is `);
    expect(problem?.field).toBe(`extraContext.${name}`);
    expect(problem?.nextStep).toBe(
      `Correct spec.templatingSettings.extraContext.${name} of the HAProxyTemplateConfig.`,
    );
  });
});

describe('what only the maps, backends and servers hold (R3)', () => {
  test.each<[string, readonly KubeObject[], readonly string[]]>([
    [
      'an endpoint more',
      [slice('web', { endpoints: ['10.0.0.1', '10.0.0.2', '10.0.0.3'] })],
      ['haproxy.cfg'],
    ],
    ['an endpoint less', [slice('web', { endpoints: ['10.0.0.2'] })], ['haproxy.cfg']],
    ['no endpoint at all', [slice('web', { endpoints: [] })], ['haproxy.cfg']],
    [
      'a path more on a backend that exists',
      [
        ingress('a', {
          rules: [
            ['a.example.com', '/', 'web:80'],
            ['a.example.com', '/x', 'web:80', 'Exact'],
          ],
        }),
      ],
      ['maps/path-exact.map'],
    ],
    [
      'a host more on a backend that exists',
      [ingress('c', { rules: [['*.example.org', '/', 'web:80']] })],
      ['maps/hosts.map', 'maps/path-prefix.map'],
    ],
    [
      'TLS for a host',
      [ingress('a', { rules: [['a.example.com', '/', 'web:80']], tls: [['', 'a.example.com']] })],
      ['maps/https-redirect.map'],
    ],
    [
      'a default backend',
      [ingress('a', { rules: [['a.example.com', '/', 'web:80']], defaultBackend: 'web:80' })],
      ['maps/host-default.map'],
    ],
    [
      'a backend more',
      [ingress('c', { rules: [['c.example.com', '/', 'other:80']] })],
      ['haproxy.cfg', 'maps/hosts.map', 'maps/path-prefix.map'],
    ],
  ])('%s leaves every section of the core as it was', (_name, upserted, files) => {
    const after = renderAll(engine, changed(before, upserted));
    expect(coreOf(after)).toStrictEqual(coreOf(first));
    expect(changedFiles(after)).toStrictEqual(files);
  });

  test('a setting changes the core, so that the test above can fail', async () => {
    const extraContext = { maxconn: 1 };
    const other = renderAll(await libraryEngine({ overrides: { extraContext } }), before);
    expect(coreOf(other)).not.toStrictEqual(coreOf(first));
  });

  test('the structure of a backend does not depend on its servers', () => {
    const after = renderAll(engine, changed(before, [slice('web', { endpoints: [] })]));
    const [old, now] = [first, after].map(({ plan }) => plan.backends.get('default_web_80'));
    expect(now?.structure).toBe(old?.structure);
    expect(now?.servers).toHaveLength(0);
    expect(now?.dynamic).toBe(true);
  });
});

const PEM = ['CERTIFICATE', 'PRIVATE KEY']
  .map((what) => `-----BEGIN ${what}-----\nAAAA\n-----END ${what}-----\n`)
  .join('');
