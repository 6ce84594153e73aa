/** Rights that are missing and certificates that have expired: told by name, nothing that served stops, and it heals. */
import { beforeAll, expect, test } from 'vitest';
import { Authority } from '../support/authority.ts';
import { cluster, makeNamespace } from '../support/cluster.ts';
import { waitFor } from '../support/haproxy.ts';
import { install, type Installation } from '../support/installation.ts';
import { Load } from '../support/load.ts';
import { firstAnswer, hostOf, statusAt, workload } from '../support/workload.ts';

const { kubectl, apply, get } = cluster();
const HOUR_MS = 3_600_000;
const PATIENT = { timeoutMs: 150_000, intervalMs: 500 };

interface Rule {
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

interface Role {
  readonly rules: readonly Rule[];
}

let release: Installation;
let namespace: string;

beforeAll(async () => {
  release = await install('rights');
  namespace = await makeNamespace('shop');
  await apply(workload({ namespace, name: 'echo', className: release.name, replicas: 2 }));
  await firstAnswer(release.url, hostOf('echo'));
});

/** What the containers of a component have logged so far. */
const logged = async (component: 'controller' | 'loadbalancer', name: string): Promise<string> => {
  const pods = await release.pods(component);
  const logs = pods.map(({ metadata }) =>
    release.kubectl('logs', metadata.name, '-c', name).catch(() => ''),
  );
  return (await Promise.all(logs)).join('\n');
};

const controllersLog = (...words: readonly string[]): Promise<string> =>
  waitFor(
    async () => {
      const lines = (await logged('controller', 'controller')).split('\n');
      return lines.find((line) => words.every((word) => line.includes(word)));
    },
    { ...PATIENT, what: `a line of the controllers with ${words.join(' and ')}` },
  );

/** Takes a verb on a resource away while something runs, and gives it back. */
const without = async (
  [verb, resource]: readonly [verb: string, resource: string],
  during: () => Promise<void>,
): Promise<void> => {
  const name = `${release.name}-${release.name}-controller`;
  const role = await get<Role>(['clusterrole', name]);
  const less = {
    ...role,
    metadata: { name },
    rules: role.rules
      .map((rule) =>
        rule.resources.includes(resource)
          ? { ...rule, verbs: rule.verbs.filter((one) => one !== verb) }
          : rule,
      )
      .filter(({ verbs }) => verbs.length > 0),
  };
  expect(JSON.stringify(less.rules)).not.toBe(JSON.stringify(role.rules));
  const patch = (rules: readonly Rule[]): Promise<string> =>
    kubectl(['patch', 'clusterrole', name, '--type=merge', '-p', JSON.stringify({ rules })]);
  await patch(less.rules);
  try {
    await during();
  } finally {
    await patch(role.rules);
  }
};

const addressOf = async (name: string): Promise<string> =>
  kubectl([
    ...['get', 'ingress', name, '-n', namespace],
    ...['-o', 'jsonpath={.status.loadBalancer.ingress[0].ip}'],
  ]);

test('S84: without the right to write statuses it is told, Ingresses are served, and the right heals it', async () => {
  await without(['patch', 'ingresses/status'], async () => {
    // The API server notices a moment later.
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    await apply(workload({ namespace, name: 'stateless', className: release.name }));
    await firstAnswer(release.url, hostOf('stateless'));
    const line = await controllersLog('ApiForbidden', 'ingresses/status');
    expect(line).toContain(namespace);
    expect(line).toMatch(/Grant the controller's service account verbs \[\\"patch\\"\]/);
    expect(await addressOf('stateless')).toBe('');
  });
  const restored = performance.now();
  await waitFor(async () => (await addressOf('stateless')) !== '', {
    ...PATIENT,
    what: 'the status',
  });
  console.log(
    `status written ${Math.round(performance.now() - restored)} ms after the right was back`,
  );
});

test('S84: without the right to list a resource new controllers say so and wait, what served goes on, and the right heals it', async () => {
  const load = new Load({ url: release.url, host: hostOf('echo'), perSecond: 10 });
  await without(['list', 'services'], async () => {
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    await release.kubectl('delete', 'pods', '-l', 'app.kubernetes.io/component=controller');
    const line = await controllersLog('WatchForbidden', 'may not list services');
    expect(line).toContain('watchedResources.services');
    for (const { status } of await release.pods('controller')) {
      expect(status.containerStatuses?.map(({ ready }) => ready)).toStrictEqual([false]);
    }
  });
  const restored = performance.now();
  await release.kubectl(
    'rollout',
    'status',
    `deployment/${release.name}-controller`,
    '--timeout=120s',
  );
  const report = await load.stop();
  console.log(
    `controllers ready ${Math.round(performance.now() - restored)} ms after the right was back; ` +
      `${report.requests} requests, ${report.failures.length} not 200`,
  );
  expect(report.failures).toStrictEqual([]);
});

interface KeyPairSecret {
  readonly data: Readonly<Record<string, string>>;
}

const SIDES = {
  server: { suffix: 'agent-server', name: 'haptic-agent' },
  client: { suffix: 'agent-client', name: 'haptic-controller' },
} as const;

const setSecret = async (suffix: string, data: KeyPairSecret['data']): Promise<void> => {
  const patch = JSON.stringify({ data });
  await release.kubectl(
    'patch',
    'secret',
    `${release.name}-${suffix}`,
    '--type=merge',
    '-p',
    patch,
  );
};

/** Makes the kubelets look at once; by themselves they do within two minutes. */
const hurry = async (word: string): Promise<void> => {
  await release.kubectl('annotate', 'pods', '--all', '--overwrite', `haptic.test/touched=${word}`);
};

test('certificates of controller and agents that have expired are told, what served goes on, and good ones heal it', async () => {
  const kept = new Map<string, KeyPairSecret['data']>();
  const authority = await Authority.root('an authority');
  const encoded = (text: string): string => Buffer.from(text).toString('base64');
  const load = new Load({ url: release.url, host: hostOf('echo'), perSecond: 10 });
  for (const { suffix, name } of Object.values(SIDES)) {
    const { data } = await release.get<KeyPairSecret>('secret', `${release.name}-${suffix}`);
    kept.set(suffix, data);
    const old = await authority.issue({ names: [name], fromMs: -2 * HOUR_MS, toMs: -HOUR_MS });
    await setSecret(suffix, {
      'tls.crt': encoded(old.certificate),
      'tls.key': encoded(old.key),
      'ca.crt': encoded(authority.certificate),
    });
  }
  await hurry('expired');
  const line = await controllersLog('expired', 'certificate');
  console.log(`told as: ${(JSON.parse(line) as { msg: string }).msg.slice(0, 300)}`);
  // A change waits, and nothing that was served stops.
  await apply(workload({ namespace, name: 'healed', className: release.name }));
  const refusal = await controllersLog('next try in', 'certificate');
  console.log(`a change that waits: ${(JSON.parse(refusal) as { msg: string }).msg.slice(0, 300)}`);
  await kubectl(['rollout', 'status', 'deployment/healed', '-n', namespace, '--timeout=60s']);
  expect(await statusAt(release.url, hostOf('healed'))).not.toBe(200);
  for (const [suffix, data] of kept) await setSecret(suffix, data);
  await hurry('good');
  const restored = performance.now();
  await firstAnswer(release.url, hostOf('healed'));
  const report = await load.stop();
  console.log(
    `the change is served ${Math.round(performance.now() - restored)} ms after the good ones were back; ` +
      `${report.requests} requests, ${report.failures.length} not 200`,
  );
  expect(report.failures).toStrictEqual([]);
});
