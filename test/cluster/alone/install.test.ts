/** The chart from its install to its end, and what the API server shows of it in between. */
import { X509Certificate } from 'node:crypto';
import { connect } from 'node:tls';
import { beforeAll, expect, test } from 'vitest';
import { Authority } from '../../support/authority.ts';
import { cluster, makeNamespace } from '../../support/cluster.ts';
import { waitFor } from '../../support/haproxy.ts';
import { install, type Installation } from '../../support/installation.ts';
import { firstAnswer, hostOf, statusAt, workload } from '../../support/workload.ts';

const { kubectl, apply, get } = cluster();
const NAME = 'echo';
const HTTPS = 443;
const PATIENT = { timeoutMs: 60_000, intervalMs: 100 };

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
}

interface Conditioned {
  readonly metadata: { readonly name: string; readonly generation: number };
  readonly status?: {
    readonly conditions?: readonly Condition[];
    readonly observedGeneration?: number;
  };
}

let before: ReadonlySet<string>;
let release: Installation;
let namespace: string;
let installedAfter: number;

beforeAll(async () => {
  namespace = await makeNamespace('shop');
  before = await everything();
  const started = performance.now();
  release = await install('install');
  installedAfter = performance.now() - started;
});

/** Every object there is, of every kind that can be listed; Events are left to run out, whoever writes them. */
const everything = async (): Promise<ReadonlySet<string>> => {
  const listed = await kubectl(['api-resources', '--verbs=list', '-o', 'name']);
  const types = listed.split('\n').filter((type) => type !== '' && !/^events(?:\.|$)/.test(type));
  const columns =
    'API:.apiVersion,KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name' as const;
  const rows = await kubectl([
    ...['get', types.join(','), '-A', '--ignore-not-found', '--no-headers'],
    ...['-o', `custom-columns=${columns}`],
  ]);
  return new Set(
    rows
      .split('\n')
      .map((row) => row.trim().replace(/\s+/g, ' '))
      .filter((row) => row !== ''),
  );
};

const conditionsOf = ({ status }: Conditioned): Readonly<Record<string, string>> =>
  Object.fromEntries((status?.conditions ?? []).map(({ type, status: is }) => [type, is]));

const reloads = (): Promise<number> => release.metric('loadbalancer', 'haptic_agent_reloads_total');

const round = (ms: number): string => `${Math.round(ms)} ms`;

/** The certificate that clients of a host see. */
const servedTo = (servername: string): Promise<X509Certificate> =>
  new Promise((resolve, reject) => {
    const { hostname } = new URL(release.url);
    const socket = connect(
      { host: hostname, port: HTTPS, servername, rejectUnauthorized: false },
      () => {
        const { raw } = socket.getPeerCertificate();
        socket.destroy();
        resolve(new X509Certificate(raw));
      },
    );
    socket.on('error', reject);
  });

const secretOf = (name: string, { certificate, key }: { certificate: string; key: string }) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  type: 'kubernetes.io/tls',
  metadata: { name, namespace },
  stringData: { 'tls.crt': certificate, 'tls.key': key },
});

test('S82 S83: helm installs controllers and load balancers that are ready, and a new Ingress is served', async () => {
  const reloadsBefore = await reloads();
  const started = performance.now();
  await apply(workload({ namespace, name: NAME, className: release.name, replicas: 2 }));
  await firstAnswer(release.url, hostOf(NAME));
  const whole = performance.now() - started;
  // Its pods run already: what is left is the controller's own time.
  const [, , ingress] = workload({ namespace, name: NAME, className: release.name });
  const second = structuredClone(ingress) as {
    metadata: { name: string };
    spec: { rules: { host: string }[] };
  };
  second.metadata.name = 'second';
  second.spec.rules[0]!.host = hostOf('second');
  const reloadsBetween = await reloads();
  const added = performance.now();
  await apply([second]);
  await firstAnswer(release.url, hostOf('second'));
  console.log(
    `installed in ${round(installedAfter)}; a workload served ${round(whole)} after kubectl apply ` +
      `(${reloadsBetween - reloadsBefore} reloads of 2 load balancers), a second Ingress of it after ` +
      `${round(performance.now() - added)} (${(await reloads()) - reloadsBetween} reloads)`,
  );
  for (const component of ['controller', 'loadbalancer'] as const) {
    const pods = await release.pods(component);
    expect(pods).toHaveLength(2);
    for (const { status } of pods) {
      const all = [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])];
      expect(all.map(({ ready, restartCount }) => [ready, restartCount])).toStrictEqual(
        all.map(() => [true, 0]),
      );
    }
  }
});

test('helm test passes', async () => {
  const said = await release.helm('test', release.name, '--timeout', '120s');
  expect(said).toMatch(/Phase: +Succeeded/);
});

test('R25: load balancers hold no credentials of the API server', async () => {
  for (const { metadata } of await release.pods('loadbalancer')) {
    const { spec } = await release.get<{
      spec: {
        automountServiceAccountToken: boolean;
        volumes: readonly { projected?: unknown }[];
        serviceAccountName: string;
      };
    }>('pod', metadata.name);
    expect(spec.automountServiceAccountToken).toBe(false);
    expect(spec.volumes.filter(({ projected }) => projected !== undefined)).toStrictEqual([]);
    const account = `system:serviceaccount:${release.name}:${spec.serviceAccountName}`;
    const { stdout } = await cluster().run([
      'kubectl',
      'auth',
      'can-i',
      'get',
      'pods',
      '--as',
      account,
    ]);
    expect(stdout.trim()).toBe('no');
  }
});

const RIGHTS = [
  { answer: 'yes', verb: 'watch', what: 'ingresses.networking.k8s.io', where: 'shop' },
  { answer: 'yes', verb: 'watch', what: 'endpointslices.discovery.k8s.io', where: 'shop' },
  { answer: 'yes', verb: 'patch', what: 'ingresses.networking.k8s.io/status', where: 'shop' },
  { answer: 'yes', verb: 'update', what: 'leases.coordination.k8s.io/haptic-config', where: 'own' },
  { answer: 'no', verb: 'update', what: 'leases.coordination.k8s.io/other', where: 'own' },
  { answer: 'no', verb: 'patch', what: 'ingresses.networking.k8s.io', where: 'shop' },
  { answer: 'no', verb: 'patch', what: 'secrets', where: 'shop' },
  { answer: 'no', verb: 'list', what: 'pods', where: 'shop' },
  { answer: 'no', verb: 'delete', what: 'pods', where: 'own' },
  { answer: 'no', verb: 'list', what: 'nodes', where: 'own' },
] as const;

test.each(RIGHTS)('S84: may the controller $verb $what ($where)? $answer', async (right) => {
  const { answer, verb, what, where } = right;
  const [resource = '', ...rest] = what.split('/');
  const named = rest[0] === 'status' ? [resource, '--subresource=status'] : [what];
  const account = `system:serviceaccount:${release.name}:${release.name}-controller`;
  const { stdout } = await cluster().run([
    'kubectl',
    ...['auth', 'can-i', verb, ...named, '--as', account],
    ...['-n', where === 'own' ? release.name : namespace],
  ]);
  expect(stdout.trim()).toBe(answer);
});

test('S51: the status of an Ingress shows the address of the load balancers', async () => {
  const shown = await waitFor(
    async () => {
      const { status } = await get<{
        status: { loadBalancer: { ingress?: readonly { ip: string }[] } };
      }>(['ingress', NAME, '-n', namespace]);
      return status.loadBalancer.ingress?.map(({ ip }) => ip);
    },
    { ...PATIENT, what: 'the address in the status' },
  );
  expect(shown).toStrictEqual([new URL(release.url).hostname]);
});

test('a certificate is served by server name, and its rotation takes seconds', async () => {
  const authority = await Authority.root('test authority');
  const host = hostOf('secure');
  const first = await authority.issue({ names: [host] });
  const standard = await servedTo('nobody.example.com');
  await apply([
    secretOf('secure', { certificate: first.certificate, key: first.key }),
    ...workload({ namespace, name: 'secure', className: release.name, tls: 'secure' }),
  ]);
  const shows = (pem: string) => async () =>
    (await servedTo(host)).fingerprint256 === new X509Certificate(pem).fingerprint256;
  const created = performance.now();
  await waitFor(shows(first.certificate), { ...PATIENT, what: 'the first certificate' });
  const createdAfter = performance.now() - created;

  const second = await authority.issue({ names: [host] });
  const reloadsBefore = await reloads();
  const rotated = performance.now();
  await apply([secretOf('secure', { certificate: second.certificate, key: second.key })]);
  await waitFor(shows(second.certificate), { ...PATIENT, what: 'the second certificate' });
  console.log(
    `certificate served ${round(createdAfter)} after kubectl apply; rotated one after ${round(performance.now() - rotated)}, ` +
      `${(await reloads()) - reloadsBefore} reloads of 2 load balancers`,
  );
  // Who asks for another name sees the default certificate, which has not changed.
  expect((await servedTo('nobody.example.com')).fingerprint256).toBe(standard.fingerprint256);
  const secret = await release.get<{ data: Readonly<Record<string, string>> }>(
    'secret',
    'default-ssl-cert',
  );
  const own = new X509Certificate(Buffer.from(secret.data['tls.crt'] ?? '', 'base64'));
  expect(standard.fingerprint256).toBe(own.fingerprint256);
});

test('R18: an Ingress without its Service is told by an Event on it, and the others are served', async () => {
  const [, , broken] = workload({ namespace, name: 'broken', className: release.name });
  await apply([broken!]);
  const event = await waitFor(
    async () => {
      const { items } = await get<{
        items: readonly { reason: string; note: string; regarding: { name: string } }[];
      }>(['events.events.k8s.io', '-n', namespace]);
      return items.find(({ regarding }) => regarding.name === 'broken');
    },
    { ...PATIENT, what: 'an Event' },
  );
  expect(event.reason).toBe('ServiceNotFound');
  expect(event.note).toContain('broken');
  expect(await statusAt(release.url, hostOf(NAME))).toBe(200);
});

test('S27: the status of the configuration says that its generation is accepted', async () => {
  const config = await release.get<Conditioned>('haproxytemplateconfig', 'haptic-config');
  expect(config.status?.observedGeneration).toBe(config.metadata.generation);
  expect(conditionsOf(config)).toMatchObject({ Accepted: 'True' });
});

test('S49 S50: what the fleet runs is published with its conditions, and no key in it', async () => {
  const published = await waitFor(
    async () => {
      const cfg = await release.get<Conditioned>('haproxycfg', 'haptic-config');
      return conditionsOf(cfg)['ConfigValidated'] === 'True' ? cfg : undefined;
    },
    { ...PATIENT, what: 'the verdict in the HAProxyCfg' },
  );
  expect(conditionsOf(published)).toMatchObject({ ConfigPinned: 'False' });
  const all = await release.get<{ items: readonly { kind: string }[] }>(
    'haproxycfg,haproxymapfile,haproxygeneralfile,haproxycrtlistfile',
  );
  const kinds = new Set(all.items.map(({ kind }) => kind));
  expect([...kinds].sort()).toStrictEqual([
    ...['HAProxyCRTListFile', 'HAProxyCfg', 'HAProxyGeneralFile', 'HAProxyMapFile'],
  ]);
  expect(JSON.stringify(all)).not.toMatch(/PRIVATE KEY|BEGIN CERTIFICATE/);
});

test('helm uninstall leaves nothing behind but the definitions', async () => {
  await kubectl([
    ...['delete', 'deployment,service,ingress,secret', '--all', '-n', namespace, '--wait'],
  ]);
  const started = performance.now();
  await release.helm('uninstall', release.name, '--wait', '--timeout', '120s');
  const uninstalledAfter = performance.now() - started;
  const own = new Set([
    `v1 Namespace <none> ${release.name}`,
    // What Kubernetes puts into every namespace.
    `v1 ServiceAccount ${release.name} default`,
    `v1 ConfigMap ${release.name} kube-root-ca.crt`,
  ]);
  const isLeft = (row: string): boolean =>
    !before.has(row) &&
    !own.has(row) &&
    !/ (?:CustomResourceDefinition|APIService) <none> \w+\.haproxy-haptic\.org$/.test(row);
  let left: readonly string[] = [];
  await waitFor(
    async () => {
      left = [...(await everything())].filter(isLeft);
      return left.length === 0;
    },
    { timeoutMs: 60_000, intervalMs: 1_000, what: 'nothing to be left' },
  ).catch(() => undefined);
  console.log(
    `uninstalled in ${round(uninstalledAfter)}, nothing left ${round(performance.now() - started)} after the start`,
  );
  expect(left).toStrictEqual([]);
});
