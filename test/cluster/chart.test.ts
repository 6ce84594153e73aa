import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { describe, expect, test } from 'vitest';
import { parseCommandLine } from '../../agent/options.ts';
import type { Values } from '../../src/cli/command.ts';
import { RUN_OPTIONS, runSettings } from '../../src/cli/run-settings.ts';
import { sha256 } from '../../src/digest.ts';
import { parseConfig } from '../../src/render/config/parse-config.ts';
import type { KubeObject } from '../../src/snapshot/objects.ts';
import { loadLibraries } from '../../src/streams/libraries.ts';
import {
  CHART,
  container,
  containersOf,
  GOLDENS,
  helm,
  named,
  NAMESPACE,
  ofKind,
  podSpec,
  present,
  rendered,
  template,
  VALUE_SETS,
  yamlFile,
} from '../support/chart.ts';
import { LIBRARIES } from '../support/rendered.ts';

/** Run with `UPDATE_GOLDEN=1` to rewrite what is expected; then read the difference. */
const UPDATE = process.env['UPDATE_GOLDEN'] === '1';

/** Keys, certificates and their ends differ each time. */
const masked = (text: string): string =>
  text
    .replace(/^( {2}(?:tls\.crt|tls\.key|ca\.crt): )[A-Za-z0-9+/=]{200,}$/gm, '$1MADE')
    .replace(/(haproxy-haptic\.org\/not-after: )"[^"]+"/g, '$1"LATER"')
    .replace(/(haproxy-haptic\.org\/issuer: )[0-9a-f]{64}/g, '$1DIGEST');

const MIB = 1_048_576;
const UNITS: Readonly<Record<string, number>> = { Mi: 1, Gi: 1024 };
const mebibytes = (quantity: unknown): number => {
  const [, number = '', unit = ''] = /^(\d+)(Mi|Gi)$/.exec(String(quantity)) ?? [];
  return Number(number) * (UNITS[unit] ?? NaN);
};

describe('the chart', () => {
  test('passes helm lint, strictly', async () => {
    for (const set of VALUE_SETS) {
      const values = join(GOLDENS, set, 'values.yaml');
      const outcome = await helm([
        ...['lint', '--strict', '--kube-version', '1.36.0', '--values', values, CHART],
      ]);
      expect(outcome.status, outcome.stdout + outcome.stderr).toBe(0);
    }
  });

  test.each(VALUE_SETS)('renders the values %s to what is on disk', async (set) => {
    const { status, stdout, stderr } = await template({ values: set });
    expect(status, stderr).toBe(0);
    const text = masked(stdout);
    const path = join(GOLDENS, set, 'expected.yaml');
    if (UPDATE) writeFileSync(path, text);
    expect(existsSync(path)).toBe(true);
    expect(text).toBe(readFileSync(path, 'utf8'));
  });

  test.each(VALUE_SETS)(
    'makes whole objects with their own names of the values %s',
    async (set) => {
      const objects = await rendered({ values: set });
      const keys = objects.map(({ apiVersion, kind, metadata }) =>
        [apiVersion, kind, metadata.namespace, metadata.name].join(' '),
      );
      expect(new Set(keys).size).toBe(keys.length);
      for (const { apiVersion, metadata } of objects) {
        expect(apiVersion).toMatch(/^([a-z0-9.-]+\/)?v\d/);
        expect(metadata.name).toMatch(/^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$/);
        expect(metadata.labels).toMatchObject({ 'app.kubernetes.io/instance': 'haptic' });
      }
    },
  );

  test('is of the same version as the program', () => {
    const { version } = JSON.parse(readFileSync(join(CHART, '..', 'package.json'), 'utf8')) as {
      version: string;
    };
    const chart = readFileSync(join(CHART, 'Chart.yaml'), 'utf8');
    expect(chart).toContain(`\nversion: ${version}\n`);
    expect(chart).toContain(`\nappVersion: ${version}\n`);
  });

  test('refuses a Kubernetes without native sidecars', async () => {
    const { status, stderr } = await helm(['template', CHART, '--kube-version', '1.32.9']);
    expect(status).not.toBe(0);
    expect(stderr).toContain('>=1.33.0-0');
  });
});

describe('the programs in the pods', () => {
  test.each(VALUE_SETS)('understand the flags that the values %s give them', async (set) => {
    const objects = await rendered({ values: set });
    const [verb, ...args] = present(
      container(named(objects, 'Deployment', '-controller'), 'controller').args,
    );
    expect(verb).toBe('run');
    const { values } = parseArgs({ args, options: RUN_OPTIONS });
    const environment = { POD_NAME: 'haptic-0', POD_NAMESPACE: NAMESPACE };
    const silent = (): void => undefined;
    const settings = runSettings({
      positionals: [],
      values: values as Values,
      terminal: {
        out: silent,
        err: silent,
        isTerminal: false,
        environment,
        signal: new AbortController().signal,
      },
    });
    const haproxy = named(objects, 'Deployment', '-haproxy');
    const agent = container(haproxy, 'agent');
    const parsed = parseCommandLine(present(agent.args));
    if (parsed.kind !== 'run') throw new Error(JSON.stringify(parsed));
    const { access, listen, metricsListen } = parsed.options;
    const ports = Object.fromEntries(
      present(agent.ports).map(({ name, containerPort }) => [present(name), containerPort]),
    );
    expect(ports).toStrictEqual({ agent: listen.port, 'agent-metrics': metricsListen?.port });
    // The two sides insist on each other's names, and find their files where the Secrets are mounted.
    const leaf = (name: string): string =>
      present(ofKind(objects, 'Secret').find(({ metadata }) => metadata.name === name)).metadata
        .annotations?.['haproxy-haptic.org/names'] ?? '';
    const secretAt = (deployment: typeof haproxy, of: string, path: string): string => {
      const mount = container(deployment, of).volumeMounts?.find((m) => m.mountPath === path);
      const volume = podSpec(deployment).volumes?.find(({ name }) => name === mount?.name);
      return present(volume?.secret?.secretName);
    };
    expect(access.kind).toBe('mutual-tls');
    if (access.kind !== 'mutual-tls' || set === 'cert-manager') return;
    const controller = named(objects, 'Deployment', '-controller');
    expect(leaf(secretAt(haproxy, 'agent', access.dir))).toBe(settings.agentTls.serverName);
    expect(leaf(secretAt(controller, 'controller', settings.agentTls.dir))).toBe(access.clientName);
  });

  test.each(VALUE_SETS)('accept the configuration that the values %s make', async (set) => {
    const objects = await rendered({ values: set });
    const config = present(objects.find(({ kind }) => kind === 'HAProxyTemplateConfig'));
    const loaded = await loadLibraries(LIBRARIES);
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
    const parsed = parseConfig(config as unknown as KubeObject, {
      libraries: loaded.libraries,
      digest: sha256,
    });
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems, undefined, 1));
    const { podSelector, dataplane, extraContext } = parsed.config;
    const pods = named(objects, 'Deployment', '-haproxy').spec?.template.metadata?.labels;
    expect(Object.keys(podSelector).length).toBeGreaterThan(1);
    expect(pods).toMatchObject(podSelector);
    const agent = named(objects, 'Deployment', '-haproxy');
    expect(container(agent, 'agent').args).toContain(
      `--reload-interval-ms=${dataplane.minDeploymentIntervalMs}`,
    );
    const ports = container(agent, 'haproxy').ports?.map((port) => port.containerPort);
    const { httpPort, httpsPort, statsPort } = extraContext;
    expect(ports).toStrictEqual([httpPort, httpsPort, statsPort]);
  });
});

describe('the pods', () => {
  test.each(VALUE_SETS)('S84, R25: have no more than they need with the values %s', async (set) => {
    const objects = await rendered({ values: set });
    for (const object of [...ofKind(objects, 'Deployment'), ...ofKind(objects, 'Pod')]) {
      const spec = podSpec(object);
      expect(spec.securityContext).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      });
      for (const { securityContext, resources, image } of Object.values(containersOf(spec))) {
        expect(securityContext).toStrictEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
        expect(resources?.limits).toHaveProperty('memory');
        expect(resources?.requests).toHaveProperty('cpu');
        expect(image).toMatch(/[:@][\w.:-]+$/);
        expect(image).not.toMatch(/:latest$/);
      }
      const isController = object.metadata.name.endsWith('-controller');
      expect(spec.automountServiceAccountToken).toBe(isController);
    }
  });

  test('R25: HAProxy runs under an account that nothing grants a right', async () => {
    const objects = await rendered();
    const account = podSpec(named(objects, 'Deployment', '-haproxy')).serviceAccountName;
    const bindings = [...ofKind(objects, 'RoleBinding'), ...ofKind(objects, 'ClusterRoleBinding')];
    const bound = bindings.flatMap(({ subjects = [] }) => subjects.map(({ name }) => name));
    expect(account).toBe('haptic-haproxy');
    expect(new Set(bound)).toStrictEqual(new Set(['haptic-controller']));
  });

  test('keep keys on memory-backed volumes, readable for their owner and group alone', async () => {
    for (const object of ofKind(await rendered(), 'Deployment')) {
      const spec = podSpec(object);
      for (const volume of present(spec.volumes)) {
        expect(volume.emptyDir?.medium ?? 'Memory').toBe('Memory');
        expect(volume.secret?.defaultMode ?? 0o400).toBe(0o400);
      }
      // A file mounted by subPath never changes: certificates would not rotate.
      const mounts = Object.values(containersOf(spec)).flatMap((one) => one.volumeMounts ?? []);
      expect(mounts.filter(({ subPath }) => subPath !== undefined)).toStrictEqual([]);
    }
  });

  test.each([
    { deployment: '-controller', name: 'controller', volumes: ['work', 'tmp'] },
    { deployment: '-haproxy', name: 'agent', volumes: ['haproxy'] },
  ])(
    '$name: heap and memory-backed volumes fit its limit',
    async ({ deployment, name, volumes }) => {
      for (const values of VALUE_SETS) {
        const object = named(await rendered({ values }), 'Deployment', deployment);
        const { env = [], resources } = container(object, name);
        const options = env.find((variable) => variable.name === 'NODE_OPTIONS')?.value ?? '';
        const heap = Number(/--max-old-space-size=(\d+)/.exec(options)?.[1]);
        const held = volumes.map((volume) =>
          mebibytes(
            podSpec(object).volumes?.find((one) => one.name === volume)?.emptyDir?.sizeLimit,
          ),
        );
        const limit = mebibytes(resources?.limits?.['memory']);
        const sum = held.reduce((all, size) => all + size, heap);
        expect(limit * MIB).toBeGreaterThan(0);
        expect(sum, `${values}: ${heap} + ${held.join(' + ')} MiB`).toBeLessThanOrEqual(limit);
      }
    },
  );

  test('HAProxy starts after its agent, ends before it, and drains', async () => {
    const haproxy = named(await rendered(), 'Deployment', '-haproxy');
    const spec = podSpec(haproxy);
    const agent = present(spec.initContainers?.at(-1));
    expect(agent).toMatchObject({ name: 'agent', restartPolicy: 'Always' });
    expect(agent.startupProbe?.httpGet).toStrictEqual({ path: '/healthz', port: 'agent-metrics' });
    // A probe of readiness would take a load balancer that serves out of service with its agent.
    expect(agent.readinessProbe).toBeUndefined();
    const { lifecycle, readinessProbe } = container(haproxy, 'haproxy');
    const seconds = lifecycle?.preStop?.sleep?.seconds ?? 0;
    expect(seconds).toBeGreaterThanOrEqual(5);
    expect(spec.terminationGracePeriodSeconds).toBeGreaterThan(2 * seconds);
    expect(readinessProbe?.httpGet).toStrictEqual({ path: '/ready', port: 'stats' });
    expect(haproxy.spec?.strategy?.rollingUpdate).toStrictEqual({ maxSurge: 1, maxUnavailable: 0 });
  });

  test('a new chart version alone restarts no load balancer', async () => {
    const { template: pod } = present(named(await rendered(), 'Deployment', '-haproxy').spec);
    expect(Object.keys(pod.metadata?.labels ?? {}).sort()).toStrictEqual([
      'app.kubernetes.io/component',
      'app.kubernetes.io/instance',
      'app.kubernetes.io/name',
    ]);
    expect(pod.metadata?.annotations).toBeUndefined();
  });
});

describe('wrong values', () => {
  test.each([
    ['an unknown name', { 'controler.logLevel': 'INFO' }, /controler/],
    ['a value of HAPTIC in Go that is gone', { 'controller.debugPort': 6060 }, /debugPort/],
    ['a misspelt member', { 'haproxy.replicaCounts': 3 }, /haproxy.*replicaCounts/s],
    ['the wrong type', { replicaCount: 'two' }, /replicaCount.*string.*integer/s],
    ['an unknown Service type', { 'haproxy.service.type': 'Ingress' }, /haproxy\/service\/type/],
    ['a moving tag', { 'image.tag': 'latest' }, /image\/tag/],
    ['a digest that is none', { 'agent.image.digest': 'sha256:1' }, /agent\/image\/digest/],
    ['an untested HAProxy', { haproxyVersion: '2.8' }, /haproxyVersion.*'3\.0'/s],
    ['agents without TLS', { 'agent.tls.enabled': false }, /agent\/tls\/enabled/],
    ['a library that is none', { 'controller.templateLibraries.ssl.enabled': true }, /ssl/],
    ['an unknown log level', { 'controller.logLevel': 'LOUD' }, /controller\/logLevel/],
    ['a port out of range', { 'haproxy.ports.http': 70000 }, /haproxy\/ports\/http/],
    ['a namespace in capitals', { 'watchNamespaces[0]': 'Shop' }, /watchNamespaces/],
    [
      'a duration without a unit',
      { 'controller.config.dataplane.minDeploymentInterval': '5' },
      /minDeploymentInterval/,
    ],
    ['an unknown field of a template', { 'controller.config.maps.a.sorted': true }, /sorted/],
    [
      'an unknown field of a resource',
      { 'controller.config.watchedResources.a.kind': 'A' },
      /watchedResources\/a/,
    ],
    [
      'a plural in capitals',
      { 'controller.config.watchedResources.a.resources': 'ConfigMaps' },
      /resources/,
    ],
    [
      'a watched resource without a version',
      { 'controller.config.watchedResources.a.resources': 'a' },
      /watchedResources\.a: apiVersions is missing/,
    ],
    [
      'a watched resource without its plural',
      { 'controller.config.watchedResources.a.apiVersion': 'v1' },
      /watchedResources\.a: resources is missing/,
    ],
    ['a quantity that is none', { 'resources.limits.memory': 'much' }, /resources\/limits\/memory/],
    ['draining without end', { 'haproxy.drainSeconds': 60 }, /drainSeconds must be less/],
    ['one name for both sides', { 'agent.tls.clientName': 'haptic-agent' }, /must differ/],
    [
      'certificates that outlive their CA',
      { 'agent.tls.caValidityDays': 300 },
      /no certificate may outlive its CA/,
    ],
    [
      'certificates renewed each time',
      { 'agent.tls.renewBeforeDays': 1095 },
      /renewBeforeDays must be less/,
    ],
    [
      'half a default certificate',
      { 'controller.defaultSSLCertificate.cert': 'x' },
      /both cert and key/,
    ],
    [
      'a Secret in a foreign namespace',
      { 'controller.defaultSSLCertificate.namespace': 'other' },
      /set create to false/,
    ],
    [
      'two leaders by decree',
      { 'controller.config.controller.leaderElection.enabled': false },
      /replicaCount must be 1/,
    ],
    [
      'an alert that is none',
      {
        'monitoring.prometheusRule.enabled': true,
        'monitoring.prometheusRule.disabledAlerts[0]': 'X',
      },
      /there is no alert X/,
    ],
  ])('%s is refused, by name', async (_, set, message) => {
    const { status, stderr } = await template({ set });
    expect(status).not.toBe(0);
    expect(stderr).toMatch(message);
  });

  test('the schema knows the fields of the HAProxyTemplateConfig, and no others', () => {
    interface Fields {
      readonly properties: Readonly<Record<string, Fields>>;
    }
    const definition = yamlFile('chart/crds/haproxytemplateconfigs.yaml') as {
      readonly spec: {
        readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: Fields } }[];
      };
    };
    const { spec } = present(definition.spec.versions[0]).schema.openAPIV3Schema.properties;
    const { properties } = JSON.parse(
      readFileSync(join(CHART, 'values.schema.json'), 'utf8'),
    ) as Fields;
    const names = (fields: Fields | undefined): readonly string[] =>
      Object.keys(present(fields).properties).sort();
    const config = properties['controller']?.properties['config'];
    // The chart makes these from other values.
    expect([...names(config), 'libraries', 'logging'].sort()).toStrictEqual(names(spec));
    for (const member of ['controller', 'dataplane', 'templatingSettings']) {
      const made = member === 'dataplane' ? ['port'] : [];
      const ours = [...names(config?.properties[member]), ...made];
      expect(ours.sort(), member).toStrictEqual(names(spec?.properties[member]));
    }
  });

  test('the schema describes every value and nothing that is not there', () => {
    // Values that have no default, because what they mean is somebody else's default.
    const silent = ['global', 'mapsDir', 'sslCertsDir', 'generalStorageDir', 'configFile'];
    interface Schema {
      readonly properties?: Readonly<Record<string, Schema>>;
      readonly $ref?: string;
    }
    const schema = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8')) as Schema & {
      readonly definitions: Readonly<Record<string, Schema>>;
    };
    const missing = (at: Schema, value: unknown, path: string): readonly string[] =>
      Object.entries(at.properties ?? {}).flatMap(([name, inner]) => {
        const member = (value as Record<string, unknown> | null)?.[name];
        if (member === undefined && !silent.includes(name)) return [`${path}.${name}`];
        return missing(inner, member ?? {}, `${path}.${name}`).filter(() => member !== undefined);
      });
    expect(missing(schema, yamlFile('chart/values.yaml'), '')).toStrictEqual([]);
  });
});
