/** The program that runs in a cluster, whole: real agent and HAProxy over mutual TLS, a fake API server. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFailed, test } from 'vitest';
import { acceptedSecret } from '../../../src/streams/accepted-config.ts';
import { Authority } from '../../support/authority.ts';
import { haproxyVersions, waitFor } from '../../support/haproxy.ts';
import type { TestKeyPair } from '../../support/key-pairs.ts';
import { projectSecret } from '../../support/secret-volume.ts';
import { Bed } from '../agent/agent-bed.ts';
import { FakeCluster, NAMESPACE } from './fake-cluster.ts';
import { Replica, type ReplicaOptions } from './replica.ts';

const [oldest] = haproxyVersions();
const haproxy = oldest?.binary ?? '';
const CONFIG = 'haptic-config';
const LIBRARIES = ['base', 'ingress', 'tls'];

let authority: Authority;
let pair: TestKeyPair;
let bed: Bed;
let cluster: FakeCluster;
let dir: string;
let replicas: Replica[];

beforeAll(async () => {
  authority = await Authority.root('test');
  pair = await authority.issue({ names: ['haptic-controller'] });
});

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'run-'));
  replicas = [];
  const agent = await authority.issue({ names: ['haptic-agent'] });
  const tlsDir = join(dir, 'agent');
  const ca = authority.certificate;
  projectSecret(tlsDir, { 'tls.crt': agent.certificate, 'tls.key': agent.key, 'ca.crt': ca });
  bed = await Bed.start(haproxy, { tlsDir });
  cluster = await FakeCluster.start();
});

afterEach(async () => {
  await Promise.all(replicas.map((replica) => replica.dispose()));
  await Promise.all([bed.stop(), cluster.server.close()]);
  rmSync(dir, { recursive: true, force: true });
});

const start = async (options: Partial<ReplicaOptions> = {}): Promise<Replica> => {
  const facts = { cluster, haproxy, pair, authority: authority.certificate };
  const replica = await Replica.start({ ...facts, ...options });
  replicas.push(replica);
  onTestFailed(() => console.error(replica.lines.join('\n')));
  return replica;
};

/** Answers each request with the names of all config maps, on the port of the bed. */
const specWith = (more = ''): Readonly<Record<string, unknown>> => ({
  podSelector: { matchLabels: { app: 'haproxy' } },
  libraries: Object.fromEntries(LIBRARIES.map((name) => [name, { enabled: false }])),
  dataplane: { port: Number(new URL(bed.agent.url).port) },
  controller: {
    leaderElection: { leaseDuration: '6s', renewDeadline: '4s', retryPeriod: '1s' },
  },
  watchedResources: {
    configmaps: { apiVersion: 'v1', resources: 'configmaps', debounceInterval: '0' },
  },
  haproxyConfig: {
    template: [
      'global',
      `    default-path origin ${bed.base}`,
      `    stats socket ${join(bed.base, 'haproxy-worker.sock')} mode 600 level admin`,
      'defaults',
      '    mode http',
      ...['connect', 'client', 'server'].map((name) => `    timeout ${name} 5s`),
      'frontend fe',
      `    bind 127.0.0.1:${String(bed.port)}`,
      '{% cells map in resources.configmaps.list() key map.metadata.name %}',
      '    http-request return status 200 content-type text/plain string {{ map.metadata.name | quoted }} if { hdr(host) -m str {{ map.metadata.name | aclPattern }} }',
      '{% endcells %}',
      more,
      '    http-request return status 404',
      '',
    ].join('\n'),
  },
});

/** The pod of the bed, as the API server shows it. */
const addPod = (): void => {
  cluster.put('pods', 'haproxy-1', {
    metadata: { labels: { app: 'haproxy' } },
    spec: { containers: [{ name: 'haproxy' }] },
    status: {
      phase: 'Running',
      podIP: '127.0.0.1',
      containerStatuses: [
        { name: 'haproxy', containerID: 'c1', state: { running: { startedAt: 'now' } } },
      ],
    },
  });
};

const serves = (host: string): Promise<boolean> =>
  waitFor(async () => (await bed.request(host)) === `200 ${host}`, {
    what: `${host} to be served`,
    timeoutMs: 10_000,
  });

const published = (): Promise<unknown> =>
  waitFor(() => cluster.own('haproxycfgs', CONFIG) !== undefined, {
    what: 'the configuration to be published',
    timeoutMs: 30_000,
  });

describe('haptic run', () => {
  test('leads, applies, serves and publishes, and gives its Lease back at the end (R11, R13)', async () => {
    addPod();
    cluster.configure(CONFIG, specWith());
    cluster.put('configmaps', 'first', {});
    const replica = await start();
    await replica.untilReady();
    await serves('first');
    expect(cluster.holder(CONFIG)).toBe('replica-1');
    cluster.put('configmaps', 'second', {});
    await serves('second');
    await published();
    await waitFor(async () =>
      /api_writes_total\{kind="HAProxyCfg",outcome="ok"\} [1-9]/.test(await replica.metrics()),
    );
    const end = await replica.end();
    expect(end.status).toBe(0);
    expect(end.ms).toBeLessThan(10_000);
    expect(cluster.holder(CONFIG)).toBe('');
    const writes = cluster.server.requests.filter(({ method }) => method !== 'GET');
    expect(writes.at(-1)?.path).toMatch(/\/leases\/haptic-config$/);
    expect(await bed.request('second')).toBe('200 second');
  });

  test('keeps trying while the API server is away at the start, and says so', async () => {
    addPod();
    cluster.configure(CONFIG, specWith());
    cluster.put('configmaps', 'first', {});
    await cluster.server.close();
    const replica = await start();
    await replica.untilLogged(/the API server cannot be asked what it serves/);
    expect(await replica.readiness()).toMatch(/^503 no valid configuration yet/);
    await cluster.server.listen();
    await replica.untilReady();
    await serves('first');
    expect(replica.log).toMatch(/fixed: .*DiscoveryFailing/);
  });

  test('serves and publishes what was accepted last while the newest is refused, and tells what it may not write (G13)', async () => {
    addPod();
    cluster.put('configmaps', 'first', {});
    const where = { namespace: NAMESPACE, name: CONFIG, uid: `uid-of-${CONFIG}` };
    const kept = acceptedSecret(
      { apiVersion: 'haproxy-haptic.org/v1alpha1', kind: 'HAProxyTemplateConfig', ...where },
      { generation: 1, spec: specWith() },
    );
    cluster.put('secrets', kept?.name ?? '', kept?.body ?? {});
    cluster.configure(CONFIG, { typo: 1 });
    cluster.server.fault = ({ method, path }) =>
      method === 'PATCH' && path.endsWith('/status') ? { type: 'status', status: 403 } : undefined;
    const replica = await start();
    await replica.untilReady();
    await serves('first');
    await published();
    await replica.untilLogged(/accepted earlier \(generation 1\) serves instead/);
    await replica.untilLogged(/May not patch haproxytemplateconfigs\/status in namespace haptic/);
  });

  test('does not wait for ever for the Secret of a default certificate that it may not read', async () => {
    cluster.configure(CONFIG, specWith());
    cluster.server.fault = ({ path, verb }) =>
      verb === 'list' && path.endsWith('/secrets') ? { type: 'status', status: 403 } : undefined;
    const replica = await start({ flags: ['--default-certificate', 'haptic/default'] });
    await replica.untilReady();
    expect(replica.log).toMatch(/may not list secrets in namespace haptic/);
    expect(replica.log).toMatch(/DefaultCertificateUnread/);
    const end = await replica.end();
    expect(end.status).toBe(0);
  });

  test('ends in order when it is asked to before there is a configuration', async () => {
    const replica = await start();
    await replica.untilLogged(/There is no HAProxyTemplateConfig haptic\/haptic-config/);
    expect(await replica.end()).toMatchObject({ status: 0 });
    expect(cluster.holder(CONFIG)).toBeUndefined();
  });
});
