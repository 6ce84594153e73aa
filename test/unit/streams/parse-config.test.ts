import { describe, expect, it } from 'vitest';
import { sha256 } from '../../../src/digest.ts';
import type { ConfigOverrides, Library } from '../../../src/render/config/layers.ts';
import { parseConfig } from '../../../src/render/config/parse-config.ts';
import type { TemplateConfig } from '../../../src/render/config/template-config.ts';
import { defaultController } from '../../support/renders.ts';
import { kubeObject } from '../../support/watched.ts';

const library = (name: string, spec: unknown, members: Partial<Library> = {}): Library => ({
  name,
  description: name,
  order: 100,
  enabled: true,
  requires: [],
  files: new Map(),
  spec,
  ...members,
});

const BASE = library(
  'base',
  {
    haproxyConfig: { file: 'main.njk' },
    templateSnippets: { hello: { template: 'from base' } },
    watchedResources: {
      slices: {
        apiVersions: ['discovery.k8s.io/v1'],
        resources: 'endpointslices',
        debounceInterval: '0',
      },
    },
  },
  { files: new Map([['main.njk', 'global']]) },
);

const config = (spec: unknown) =>
  kubeObject('default/haptic', {
    apiVersion: 'haproxy-haptic.org/v1alpha1',
    kind: 'HAProxyTemplateConfig',
    spec,
  });

const parse = (
  spec: unknown,
  libraries: readonly Library[] = [BASE],
  overrides?: ConfigOverrides,
) =>
  parseConfig(spec === undefined ? undefined : config(spec), {
    libraries,
    digest: sha256,
    ...(overrides && { overrides }),
  });

const good = (...args: Parameters<typeof parse>): TemplateConfig => {
  const result = parse(...args);
  if (!result.ok) throw new Error(result.problems.map(({ message }) => message).join('\n'));
  return result.config;
};

const refusals = (...args: Parameters<typeof parse>) => {
  const result = parse(...args);
  return result.ok ? [] : result.problems;
};

describe('parseConfig', () => {
  it('fills in every default without a configuration', () => {
    expect(good(undefined)).toStrictEqual({
      generation: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown,
      podSelector: {},
      watched: [
        {
          name: 'slices',
          apiVersions: ['discovery.k8s.io/v1'],
          resources: 'endpointslices',
          optional: false,
          namespaces: [],
          labelSelector: {},
          fieldSelector: {},
          indexBy: ['metadata.namespace', 'metadata.name'],
          ignoreFields: [
            'metadata.managedFields',
            'metadata.annotations.kubectl\\.kubernetes\\.io/last-applied-configuration',
          ],
          store: 'full',
          debounceMs: 0,
          maxWaitMs: 1_000,
        },
      ],
      main: { source: 'libraries/base: main.njk', text: 'global', requires: [] },
      snippets: new Map([
        ['hello', { source: 'libraries/base: hello', text: 'from base', requires: [] }],
      ]),
      maps: new Map(),
      files: new Map(),
      certificates: new Map(),
      extraContext: {},
      dataplane: {
        port: 5555,
        minDeploymentIntervalMs: 5_000,
        driftPreventionIntervalMs: 60_000,
        deploymentTimeoutMs: 30_000,
        configPublishIntervalMs: 10_000,
        baseDir: '/etc/haproxy',
        mapsDir: 'maps',
        sslCertsDir: 'certs',
        generalStorageDir: 'general',
        configFile: 'haproxy.cfg',
      },
      controller: defaultController,
      validationTests: new Map(),
      logLevel: 'info',
    });
  });

  it('reads every field', () => {
    const result = good({
      podSelector: { matchLabels: { app: 'lb' } },
      watchedResources: {
        routes: {
          apiVersion: 'example.org/v1',
          resources: 'routes',
          optional: true,
          namespaces: ['web'],
          labelSelector: 'app=web,tier==front',
          fieldSelector: { 'metadata.name': 'x' },
          indexBy: ['metadata.labels.app\\.kubernetes\\.io/name'],
          ignoreFields: ['status'],
          store: 'on-demand',
          debounceInterval: '1s',
          maxWait: '1m30s',
        },
      },
      watchedResourcesIgnoreFields: ['metadata.generation'],
      haproxyConfig: { template: 'mine' },
      templateSnippets: { s: { template: 's', requires: ['routes'] } },
      maps: { 'a.map': { template: 'm', ordered: false }, 'b.map': { template: 'n' } },
      files: { 'a.http': { template: 'f', reloadOnPush: false } },
      sslCertificates: { 'a.pem': { template: 'c' } },
      libraries: { base: { enabled: true } },
      templatingSettings: { extraContext: { httpPort: 80 } },
      validationTests: {
        t: {
          description: 'what it shows',
          fixtures: { routes: [{ kind: 'Route' }] },
          extraContext: { httpPort: 81 },
          minHAProxyVersion: 3.2,
          requires: ['routes'],
          assertions: [
            { type: 'match_count', target: 'map:a.map', pattern: 'x', expected: 2 },
            { type: 'match_order', patterns: ['a', 'b'], description: 'a, then b' },
            { type: 'jsonpath', jsonpath: '{.a}', expected: true },
          ],
        },
      },
      controller: {
        leaderElection: {
          leaseName: 'l',
          leaseDuration: '15s',
          renewDeadline: '10s',
          retryPeriod: '2s',
        },
        configPublishing: { compressionThreshold: 1 },
      },
      dataplane: {
        port: 1,
        minDeploymentInterval: '0',
        driftPreventionInterval: '2s',
        deploymentTimeout: '3s',
        configPublishInterval: '4s',
        mapsDir: '/etc/haproxy/m/',
        sslCertsDir: 'ssl/x',
        generalStorageDir: 'g',
        configFile: '/etc/haproxy/h.cfg',
      },
      logging: { level: 'debug' },
    });
    expect(result).toMatchObject({
      podSelector: { app: 'lb' },
      main: {
        source: 'HAProxyTemplateConfig default/haptic: haproxyConfig.template',
        text: 'mine',
      },
      extraContext: { httpPort: 80 },
      logLevel: 'debug',
      controller: {
        leaderElection: {
          enabled: true,
          leaseName: 'l',
          leaseDurationMs: 15_000,
          renewDeadlineMs: 10_000,
          retryPeriodMs: 2_000,
        },
        configPublishing: { enabled: true, compressionThreshold: 1 },
      },
    });
    expect(result.validationTests.get('t')).toStrictEqual({
      description: 'what it shows',
      fixtures: new Map([['routes', [{ kind: 'Route' }]]]),
      extraContext: { httpPort: 81 },
      minHAProxyVersion: '3.2',
      requires: ['routes'],
      assertions: [
        { type: 'match_count', target: 'map:a.map', pattern: 'x', expected: '2' },
        { type: 'match_order', patterns: ['a', 'b'], description: 'a, then b' },
        { type: 'jsonpath', jsonpath: '{.a}', expected: 'true' },
      ],
    });
    expect(result.watched.find(({ name }) => name === 'routes')).toMatchObject({
      apiVersions: ['example.org/v1'],
      optional: true,
      namespaces: ['web'],
      labelSelector: { app: 'web', tier: 'front' },
      fieldSelector: { 'metadata.name': 'x' },
      indexBy: ['metadata.labels.app\\.kubernetes\\.io/name'],
      store: 'on-demand',
      debounceMs: 1_000,
      maxWaitMs: 90_000,
    });
    expect(result.watched[0]?.ignoreFields.slice(-2)).toStrictEqual([
      'metadata.generation',
      'status',
    ]);
    expect(result.snippets.get('s')).toStrictEqual({
      source: 'HAProxyTemplateConfig default/haptic: templateSnippets.s.template',
      text: 's',
      requires: ['routes'],
    });
    expect([...result.maps.values()].map(({ ordered }) => ordered)).toStrictEqual([false, true]);
    expect(result.files.get('a.http')?.reloadOnPush).toBe(false);
    expect(result.certificates.get('a.pem')?.text).toBe('c');
    expect(result.dataplane).toStrictEqual({
      port: 1,
      minDeploymentIntervalMs: 0,
      driftPreventionIntervalMs: 2_000,
      deploymentTimeoutMs: 3_000,
      configPublishIntervalMs: 4_000,
      baseDir: '/etc/haproxy',
      mapsDir: 'm',
      sslCertsDir: 'ssl/x',
      generalStorageDir: 'g',
      configFile: 'h.cfg',
    });
  });

  it('names an unknown field by its path, with the nearest known one', () => {
    const [first, second, third] = refusals({
      watchedResouces: {},
      maps: { 'hosts.map': { template: '', orderd: true } },
      dataplane: { minDeployInterval: '5s' },
    });
    expect(first).toMatchObject({
      severity: 'error',
      reason: 'InvalidConfig',
      message: 'watchedResouces is not known; the nearest known field is watchedResources.',
      field: 'spec.watchedResouces',
      object: { kind: 'HAProxyTemplateConfig', namespace: 'default', name: 'haptic' },
    });
    expect(second).toMatchObject({ field: 'spec.maps["hosts.map"].orderd' });
    expect(second?.message).toMatch(/^orderd is not known; /);
    expect(third?.message).toContain('nearest known field is minDeploymentInterval');
  });

  it('names the last member of a field in its sentence, for the path stands beside it', () => {
    const messages = refusals({
      maps: { 'a b.map': { template: '' } },
      watchedResources: { x: { apiVersion: 'v1', resources: 'x', namespaces: [1] } },
    }).map(({ message }) => message);
    expect(messages.join('\n')).toContain('"a b.map" is not a name for a file.');
    expect(messages.join('\n')).toContain('namespaces[0] must be a text, not a number.');
  });

  it.each([
    ['a text for a mapping', { maps: 'x' }, 'spec.maps'],
    ['a list for a mapping', { dataplane: [] }, 'spec.dataplane'],
    ['a text for a number', { dataplane: { port: '80' } }, 'spec.dataplane.port'],
    ['a port out of range', { dataplane: { port: 65_536 } }, 'spec.dataplane.port'],
    ['a number for a text', { haproxyConfig: { template: 1 } }, 'spec.haproxyConfig.template'],
    [
      'a text for a flag',
      { libraries: { base: { enabled: 'no' } } },
      'spec.libraries.base.enabled',
    ],
    [
      'a number for a duration',
      { dataplane: { deploymentTimeout: 5 } },
      'spec.dataplane.deploymentTimeout',
    ],
    [
      'a time-out of nothing',
      { dataplane: { deploymentTimeout: '0' } },
      'spec.dataplane.deploymentTimeout',
    ],
    ['a path that leads outside', { dataplane: { mapsDir: '../x' } }, 'spec.dataplane.mapsDir'],
    [
      'another absolute path',
      { dataplane: { configFile: '/etc/passwd' } },
      'spec.dataplane.configFile',
    ],
    ['one path for two purposes', { dataplane: { mapsDir: 'certs' } }, 'spec.dataplane'],
    ['an unknown level', { logging: { level: 'loud' } }, 'spec.logging.level'],
    ['an unknown library', { libraries: { bsae: { enabled: true } } }, 'spec.libraries.bsae'],
    ['a field that is planned', { k8sResources: {} }, 'spec.k8sResources'],
    ['a member called constructor', { constructor: {} }, 'spec.constructor'],
    ['a path for a file name', { files: { '../x': { template: '' } } }, 'spec.files["../x"]'],
    [
      'a pattern for a snippet name',
      { templateSnippets: { 'a*': { template: '' } } },
      'spec.templateSnippets["a*"]',
    ],
    ['a map without a template', { maps: { m: { ordered: true } } }, 'spec.maps.m.template'],
    ['a file from a user', { haproxyConfig: { file: 'x' } }, 'spec.haproxyConfig.file'],
    [
      'a requirement nobody watches',
      { templateSnippets: { s: { template: '', requires: ['slice'] } } },
      'spec.templateSnippets.s.requires',
    ],
    [
      'a malformed path',
      { watchedResources: { slices: { indexBy: ['a..b'] } } },
      'spec.watchedResources.slices.indexBy[0]',
    ],
    [
      'an identity to be ignored',
      { watchedResourcesIgnoreFields: ['metadata.name'] },
      'spec.watchedResourcesIgnoreFields[0]',
    ],
    [
      'a selector with other terms',
      { watchedResources: { slices: { labelSelector: 'a!=b' } } },
      'spec.watchedResources.slices.labelSelector',
    ],
    [
      'a resource without a version',
      { watchedResources: { x: { resources: 'xs' } } },
      'spec.watchedResources.x.apiVersions',
    ],
    [
      'a resource without a plural',
      { watchedResources: { x: { apiVersion: 'v1' } } },
      'spec.watchedResources.x.resources',
    ],
    [
      'both kinds of versions',
      { watchedResources: { x: { apiVersion: 'v1', apiVersions: ['v2'], resources: 'xs' } } },
      'spec.watchedResources.x',
    ],
    [
      'a name templates cannot say',
      { watchedResources: { 'a-b': { apiVersion: 'v1', resources: 'xs' } } },
      'spec.watchedResources.a-b',
    ],
    [
      'a wait below the window',
      { watchedResources: { slices: { debounceInterval: '2s', maxWait: '1s' } } },
      'spec.watchedResources.slices.maxWait',
    ],
    [
      'an index over content that is on demand',
      { watchedResources: { slices: { store: 'on-demand', indexBy: ['spec.x'] } } },
      'spec.watchedResources.slices.indexBy',
    ],
    [
      'a selector over content that is on demand',
      { watchedResources: { slices: { store: 'on-demand', fieldSelector: { type: 'x' } } } },
      'spec.watchedResources.slices.fieldSelector',
    ],
  ])('refuses %s', (_, spec, field) => {
    const problems = refusals(spec);
    expect(problems.map((problem) => problem.field)).toContain(field);
    for (const { message, nextStep } of problems) expect([message, nextStep]).not.toContain('');
  });

  it('refuses what stands beside spec', () => {
    const object = { ...config({}), templateSnippets: {} };
    const result = parseConfig(object, { libraries: [BASE], digest: sha256 });
    expect(result).toMatchObject({ ok: false, problems: [{ field: 'templateSnippets' }] });
  });

  it('takes empty fields for absent ones', () => {
    expect(good({ maps: null, dataplane: { port: null } }).generation).toBe(
      good(undefined).generation,
    );
    expect(parse(null)).toMatchObject({ ok: true });
  });

  it('merges libraries in their order and the user last, by name', () => {
    const libraries = [
      library(
        'late',
        { templateSnippets: { a: { template: 'late' }, b: { template: 'late' } } },
        { order: 900 },
      ),
      library(
        'early',
        { templateSnippets: { a: { template: 'early' }, c: { template: 'early' } } },
        { order: 10 },
      ),
      BASE,
    ];
    const { snippets } = good({ templateSnippets: { b: { template: 'mine' } } }, libraries);
    expect([...snippets].map(([name, { text }]) => `${name}: ${text}`)).toStrictEqual([
      'a: late',
      'b: mine',
      'c: early',
      'hello: from base',
    ]);
  });

  it('lets a user change members of a library entry without repeating it', () => {
    const maps = library('maps', { maps: { m: { template: 'theirs', ordered: false } } });
    const spec = {
      maps: { m: { ordered: true } },
      watchedResources: { slices: { labelSelector: { app: 'web' } } },
    };
    const result = good(spec, [BASE, maps]);
    expect(result.maps.get('m')).toMatchObject({ text: 'theirs', ordered: true });
    expect(result.watched[0]).toMatchObject({
      apiVersions: ['discovery.k8s.io/v1'],
      labelSelector: { app: 'web' },
      debounceMs: 0,
    });
    expect(
      good({ watchedResources: { slices: { apiVersion: 'v2' } } }).watched[0]?.apiVersions,
    ).toStrictEqual(['v2']);
  });

  it('leaves out libraries that are off, and wants those that others need', () => {
    const extra = library(
      'extra',
      { templateSnippets: { x: { template: '' } } },
      { enabled: false, requires: ['base'] },
    );
    expect(good(undefined, [BASE, extra]).snippets.has('x')).toBe(false);
    expect(good({ libraries: { extra: { enabled: true } } }, [BASE, extra]).snippets.has('x')).toBe(
      true,
    );
    const spec = {
      libraries: { extra: { enabled: true }, base: { enabled: false } },
      haproxyConfig: { template: '' },
    };
    expect(refusals(spec, [BASE, extra])).toMatchObject([{ field: 'spec.libraries.base' }]);
  });

  it('wants a template of the configuration file', () => {
    expect(refusals(undefined, [])).toMatchObject([{ field: 'spec.haproxyConfig.template' }]);
  });

  it.each([
    ['an unknown field', { templateSnipets: {} }, 'spec.templateSnipets'],
    ['a file that is not there', { maps: { m: { file: 'main.njK' } } }, 'spec.maps.m.file'],
    ['both template and file', { maps: { m: { file: 'main.njk', template: '' } } }, 'spec.maps.m'],
  ])('reports %s of a library', (_, spec, field) => {
    const broken = library('broken', spec, { files: new Map([['main.njk', '']]) });
    expect(refusals(undefined, [BASE, broken])).toMatchObject([
      { reason: 'InvalidLibrary', field, place: { source: 'libraries/broken/library.yaml' } },
    ]);
  });

  it('merges extraContext member by member: libraries, user, program', () => {
    const libraries = [
      BASE,
      library('a', {
        templatingSettings: {
          extraContext: { timeouts: { client: '1s', server: '1s' }, list: [1, 2], port: 1 },
        },
      }),
    ];
    const context = { timeouts: { client: '9s' }, list: [3], port: 2 };
    const { extraContext } = good({ templatingSettings: { extraContext: context } }, libraries, {
      extraContext: { port: 3, extra: true },
    });
    expect(extraContext).toStrictEqual({
      timeouts: { client: '9s', server: '1s' },
      list: [3],
      port: 3,
      extra: true,
    });
  });

  it('keeps __proto__ in extraContext plain data', () => {
    const context: unknown = JSON.parse('{"__proto__":{"admin":true}}');
    const { extraContext } = good({ templatingSettings: { extraContext: context } });
    expect(Object.getPrototypeOf(extraContext)).toBe(Object.prototype);
    expect(extraContext['admin']).toBeUndefined();
    expect(Object.keys(extraContext)).toStrictEqual(['__proto__']);
  });

  it('watches the namespaces of the program where a resource names none', () => {
    const watchedResources = {
      routes: { apiVersion: 'example.org/v1', resources: 'routes', namespaces: ['own'] },
    };
    const { watched } = good({ watchedResources }, [BASE], { watchNamespaces: ['a', 'b'] });
    expect(watched.map(({ name, namespaces }) => [name, namespaces])).toStrictEqual([
      ['routes', ['own']],
      ['slices', ['a', 'b']],
    ]);
  });

  it.each([
    [{ leaseDuration: '20s' }, 'renewDeadline must be shorter than leaseDuration'],
    [{ renewDeadline: '5s' }, 'retryPeriod must be shorter than renewDeadline'],
    [{ leaseName: 'Not_A_Name' }, 'leaseName is not a name for an object'],
  ])('refuses %j of the leader election', (leaderElection, message) => {
    const [problem] = refusals({ controller: { leaderElection } });
    expect(JSON.stringify(problem)).toContain(message);
  });

  it('takes the directory and settings of the program', () => {
    const overrides = { baseDir: '/run/haptic', dataplane: { port: 7 } };
    const { dataplane } = good(
      { dataplane: { port: 5, mapsDir: '/run/haptic/m' } },
      [BASE],
      overrides,
    );
    expect(dataplane).toMatchObject({ baseDir: '/run/haptic', port: 7, mapsDir: 'm' });
  });

  it('has the same generation for every order of members, and another one for other content', () => {
    const one = {
      maps: { a: { template: '1' }, b: { template: '2' } },
      logging: { level: 'warn' },
    };
    const two = {
      logging: { level: 'warn' },
      maps: { b: { template: '2' }, a: { template: '1' } },
    };
    expect(good(one).generation).toBe(good(two).generation);
    expect(good({ ...one, maps: {} }).generation).not.toBe(good(one).generation);
  });
});
