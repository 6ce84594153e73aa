/** Refusals in the program that runs in a cluster, whole: two pods with real HAProxys, a real checker, a fake API server. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from 'vitest';
import { Authority } from '../../support/authority.ts';
import { freePort, haproxyVersions, waitFor } from '../../support/haproxy.ts';
import { projectSecret } from '../../support/secret-volume.ts';
import { Bed } from '../agent/agent-bed.ts';
import { FakeCluster, NAMESPACE } from '../cluster/fake-cluster.ts';
import { Replica } from '../cluster/replica.ts';
import { SteeredChecker, type Steering } from './steered-checker.ts';

const CONFIG = 'haptic-config';
const versions = haproxyVersions();
const [oldest] = versions;
const newest = versions.at(-1);
const PATIENCE_MS = 20_000;

/** Both pods read the same files: paths are relative to where each HAProxy was started. */
const TEMPLATE = `global
    default-path origin base
    stats socket unix@base/haproxy-worker.sock mode 600 level admin
    hard-stop-after 5s
{{ profile({ name: "plain", body: timeouts }) }}
frontend fe from plain
    bind unix@base/web.sock
    http-request deny if { src -f {{ path("denied.lst", "file") }} }
    use_backend %[req.hdr(host),lower]
{% cells pool in resources.configmaps.list() key pool.metadata.name %}
{{ backend({ name: pool.metadata.name, mode: "http", balance: "roundrobin", profile: "plain",
     servers: [server({ address: "127.0.0.1", port: pool.data.port })] }) }}
{% endcells %}
`;

let dir: string;
let cluster: FakeCluster;
let replica: Replica;
let checker: SteeredChecker;
/** Of the checker's version, and of another. */
let same: Bed;
let other: Bed;

/** Workers that started from the first render. */
let started: readonly string[];

const steer = (how: Steering): void => checker.steer(how);

const spec = (port: number): Readonly<Record<string, unknown>> => ({
  podSelector: { matchLabels: { app: 'haproxy' } },
  libraries: Object.fromEntries(
    ['base', 'ingress', 'tls'].map((name) => [name, { enabled: false }]),
  ),
  dataplane: { port, minDeploymentInterval: '1s', configPublishInterval: '500ms' },
  controller: {
    leaderElection: { leaseDuration: '6s', renewDeadline: '4s', retryPeriod: '1s' },
  },
  watchedResources: {
    configmaps: { apiVersion: 'v1', resources: 'configmaps', debounceInterval: '0' },
  },
  files: {
    'denied.lst': {
      template:
        '{% for pool in resources.configmaps.list() %}{{ pool.data.denied | token }}\n{% endfor %}',
      reloadOnPush: false,
    },
  },
  haproxyConfig: {
    template: `{% set timeouts %}
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
{% endset %}${TEMPLATE}`,
  },
});

const addPod = (name: string, address: string): void => {
  cluster.put('pods', name, {
    metadata: { labels: { app: 'haproxy' } },
    spec: { containers: [{ name: 'haproxy' }] },
    status: {
      phase: 'Running',
      podIP: address,
      containerStatuses: [
        { name: 'haproxy', containerID: name, state: { running: { startedAt: 'now' } } },
      ],
    },
  });
};

const pool = (port: number, denied = '192.0.2.1'): void =>
  cluster.put('configmaps', 'web', { data: { port, denied } });

/** Somebody else holds the Lease for once, and never renews it. */
const deposeLeader = (): void => {
  const leases = cluster.server.collection('/apis/coordination.k8s.io/v1/leases');
  const lease = cluster.server.object(
    `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/${CONFIG}`,
  );
  if (lease === undefined) throw new Error('there is no Lease');
  leases.put(`${NAMESPACE}/${CONFIG}`, {
    ...lease,
    metadata: { ...lease.metadata, resourceVersion: String(leases.version + 1) },
    spec: { ...(lease['spec'] as object), holderIdentity: 'another' },
  });
};

const eventually = <T>(what: string, ask: () => T | Promise<T>) =>
  waitFor(ask, { what, timeoutMs: PATIENCE_MS, intervalMs: 50 });

/** Port of the one server that takes requests. */
const portAt = async (bed: Bed): Promise<string> =>
  (await bed.servers('web'))
    .map((line) => line.split(' '))
    .flatMap(([, , port = '', , state]) => (state === '0' ? [port] : []))
    .join();

const workerOf = async (bed: Bed): Promise<string> =>
  /^Pid: (\d+)$/m.exec(await bed.runtime('show info'))?.[1] ?? '';

const workers = () => Promise.all([same, other].map(workerOf));

const configAt = (bed: Bed): string => readFileSync(join(bed.base, 'haproxy.cfg'), 'utf8');

const listAt = (bed: Bed): string => readFileSync(join(bed.base, 'general/denied.lst'), 'utf8');

interface Conditions {
  readonly conditions?: readonly {
    readonly type: string;
    readonly status: string;
    readonly reason: string;
    readonly message: string;
  }[];
}

const condition = (type: string) => {
  const { conditions = [] } = (cluster.own('haproxycfgs', CONFIG)?.['status'] ?? {}) as Conditions;
  return conditions.find((one) => one.type === type);
};

const vars = async () =>
  JSON.parse(await replica.debugVars()) as {
    readonly gate: Readonly<Record<string, unknown>>;
    readonly facts: { readonly checkerIsolation: Readonly<Record<string, unknown>> };
  };

const phase = async (): Promise<unknown> => (await vars()).gate['phase'];

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'flt-'));
  const authority = await Authority.root('test');
  const pair = await authority.issue({ names: ['haptic-controller'] });
  const agent = await authority.issue({ names: ['haptic-agent'] });
  const tlsDir = join(dir, 'agent');
  const ca = authority.certificate;
  projectSecret(tlsDir, { 'tls.crt': agent.certificate, 'tls.key': agent.key, 'ca.crt': ca });
  const port = await freePort();
  const bedAt = (address: string, binary = ''): Promise<Bed> =>
    Bed.start(binary, { tlsDir, args: ['--listen', `${address}:${String(port)}`] });
  checker = new SteeredChecker(oldest?.binary ?? '');
  [same, other, cluster] = await Promise.all([
    bedAt('127.0.0.1', oldest?.binary),
    bedAt('127.0.0.2', newest?.binary),
    FakeCluster.start(),
  ]);
  addPod('haproxy-same', '127.0.0.1');
  addPod('haproxy-other', '127.0.0.2');
  cluster.configure(CONFIG, spec(port));
  pool(9001);
  replica = await Replica.start({ cluster, haproxy: checker.binary, pair, authority: ca });
  await replica.untilReady(30_000);
  await eventually('both pods to hold it', async () =>
    (await Promise.all([same, other].map(portAt))).every((held) => held === '9001'),
  );
  started = await workers();
  await eventually('the first pass', () => condition('ConfigValidated')?.status === 'True');
}, 120_000);

afterAll(async () => {
  await replica.dispose();
  await Promise.all([same.stop(), other.stop(), cluster.server.close()]);
  checker.dispose();
  rmSync(dir, { recursive: true, force: true });
});

describe('what runtime commands accept and a reload would refuse', () => {
  test('G9, S14: is taken back at once by operations, without a reload, and everything else goes on', async () => {
    onTestFailed(() => console.error(replica.log));
    const before = await workers();
    // No worker reads the list again, so both take the new server; HAProxy would not start with it.
    pool(9002, 'not-an-address');
    await replica.untilLogged(/reverting pods on/);
    await eventually('the list to be back', () =>
      [same, other].every((bed) => listAt(bed) === '192.0.2.1\n'),
    );
    await eventually('the gate to open', async () => (await phase()) === 'open');
    await eventually('the old server', async () => (await portAt(same)) === '9001');
    expect(replica.log).toContain("'not-an-address' is not a valid IPv4 or IPv6 address");
    pool(9003);
    await eventually('the good one', async () => (await portAt(same)) === '9003');
    await eventually('the good one', async () => (await portAt(other)) === '9003');
    expect(await workers()).toStrictEqual(before);
  }, 120_000);
});

describe('a new leader whose first render is refused', () => {
  test('G9: takes a pod back to its last good tree with the servers of today, and none of another minor version than the checker', async () => {
    onTestFailed(() => console.error(replica.log));
    await eventually('the pass', async () => (await vars()).gate['lastVerdict'] === 'passed');
    steer('refuse');
    deposeLeader();
    await replica.untilLogged(/leading, epoch 2[^]*reverting pods on/, PATIENCE_MS);
    await eventually('the old tree', () => configAt(same).includes('127.0.0.1:9001'));
    expect(configAt(other)).toContain('127.0.0.1:9003');
    expect(await Promise.all([same, other].map(portAt))).toStrictEqual(['9003', '9003']);
    expect(await workers()).toStrictEqual(started);
  }, 120_000);

  test('S14, S23: verdict and reason stand in conditions, metrics, /debug/vars and log while it holds', async () => {
    onTestFailed(() => console.error(replica.log));
    await eventually('the condition', () => condition('ConfigValidated')?.status === 'False');
    expect(condition('ConfigValidated')).toMatchObject({
      reason: 'Refused',
      message: expect.stringContaining("unknown keyword 'nonsense'") as string,
    });
    expect(condition('ConfigPinned')).toMatchObject({ status: 'False', reason: 'Holding' });
    expect((await vars()).gate).toMatchObject({
      phase: 'holding',
      lastVerdict: 'refused',
      lastMessage: expect.stringContaining("unknown keyword 'nonsense'") as string,
    });
    expect(replica.log).toContain("unknown keyword 'nonsense'");
    const metrics = await replica.metrics();
    expect(metrics).toContain('haptic_gate_state 1\n');
    expect(metrics).toMatch(/^haptic_gate_checks_total\{verdict="refused"\} [1-9]/m);
    expect(metrics).toMatch(/^haptic_reverts_total 2$/m);
  }, 120_000);

  test('S14, S23: a further refusal pins, and endpoints still flow', async () => {
    onTestFailed(() => console.error(replica.log));
    pool(9004, '192.0.2.4');
    await eventually('pinned', async () => (await phase()) === 'pinned');
    await eventually('the condition', () => condition('ConfigPinned')?.status === 'True');
    expect(condition('ConfigPinned')).toMatchObject({ reason: 'Refused' });
    expect(await replica.metrics()).toContain('haptic_gate_state 2\n');
    expect(replica.log).toContain('gate is pinned');
    await eventually('the server', async () => (await portAt(same)) === '9004');
    await eventually('the server', async () => (await portAt(other)) === '9004');
    expect(listAt(same)).toBe('192.0.2.1\n');
  }, 120_000);

  test('S14, S23: a checker that dies is no refusal: pinned stays pinned, and the cause is told', async () => {
    onTestFailed(() => console.error(replica.log));
    steer('die');
    pool(9005, '192.0.2.5');
    await eventually('the condition', () => condition('ConfigValidated')?.status === 'Unknown');
    expect(condition('ConfigValidated')).toMatchObject({
      reason: 'Inconclusive',
      message: expect.stringContaining('SIGKILL') as string,
    });
    expect((await vars()).gate).toMatchObject({ phase: 'pinned', lastVerdict: 'inconclusive' });
    expect(await replica.metrics()).toMatch(
      /^haptic_gate_checks_total\{verdict="inconclusive"\} [1-9]/m,
    );
    expect(replica.log).toMatch(/SIGKILL/);
    await eventually('the server', async () => (await portAt(same)) === '9005');
  }, 120_000);

  test('S14, S23: the next pass releases all of it, without a reload since the start', async () => {
    onTestFailed(() => console.error(replica.log));
    steer('judge');
    await eventually('the release', async () => (await phase()) === 'open');
    await eventually('the condition', () => condition('ConfigPinned')?.status === 'False');
    await eventually('the verdict', () => condition('ConfigValidated')?.status === 'True');
    await eventually('the files', () =>
      [same, other].every((bed) => listAt(bed) === '192.0.2.5\n'),
    );
    expect(await replica.metrics()).toContain('haptic_gate_state 0\n');
    expect(await workers()).toStrictEqual(started);
  }, 120_000);

  test('S23: what confines the checks stands in /debug/vars and in the metrics', async () => {
    const { network, filesystem, user, memory } = (await vars()).facts.checkerIsolation;
    const metrics = await replica.metrics();
    for (const [part, inForce] of Object.entries({ network, filesystem, user, memory })) {
      expect(metrics).toContain(
        `haptic_gate_isolation{part="${part}"} ${String(Number(inForce))}\n`,
      );
    }
    expect(memory).toBe(true);
  });
});
