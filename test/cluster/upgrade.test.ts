/** The chart upgraded and rolled back under load: nobody notices. */
import { beforeAll, expect, test } from 'vitest';
import { cluster, makeNamespace } from '../support/cluster.ts';
import { waitFor } from '../support/haproxy.ts';
import { install, type Installation } from '../support/installation.ts';
import { Load } from '../support/load.ts';
import { firstAnswer, hostOf, servedByAll, workload } from '../support/workload.ts';

const { apply } = cluster();

let release: Installation;

beforeAll(async () => {
  release = await install('upgrade');
  const namespace = await makeNamespace('shop');
  await apply(workload({ namespace, name: 'echo', className: release.name, replicas: 2 }));
  await servedByAll(release.url, hostOf('echo'));
});

const uids = async (): Promise<readonly string[]> =>
  [...(await release.pods('controller')), ...(await release.pods('loadbalancer'))].map(
    ({ metadata }) => metadata.uid,
  );

/** Waits until the last of some pods has drained. */
const gone = (old: readonly string[]): Promise<boolean> =>
  waitFor(async () => (await uids()).every((uid) => !old.includes(uid)), {
    timeoutMs: 120_000,
    what: 'the old pods to be gone',
  });

test('an upgrade that replaces every pod, under load: every answer is 200', async () => {
  const before = await uids();
  const load = new Load({ url: release.url, host: hostOf('echo') });
  const started = performance.now();
  await release.upgrade({
    podAnnotations: { round: '2' },
    haproxy: { podAnnotations: { round: '2' } },
  });
  const took = Math.round(performance.now() - started);
  await gone(before);
  const report = await load.stop();
  console.log(
    `upgraded in ${took} ms: ${report.requests} requests, ${report.failures.length} not 200`,
  );
  expect(report.failures).toStrictEqual([]);
});

test('a rollback under load: every answer is 200', async () => {
  const before = await uids();
  const load = new Load({ url: release.url, host: hostOf('echo') });
  const started = performance.now();
  await release.helm('rollback', release.name, '1', '--wait', '--timeout', '240s');
  const took = Math.round(performance.now() - started);
  await gone(before);
  const report = await load.stop();
  console.log(
    `rolled back in ${took} ms: ${report.requests} requests, ${report.failures.length} not 200`,
  );
  expect(report.failures).toStrictEqual([]);
});

test('an upgrade of HAProxy to another branch and back, under load: every answer is 200', async () => {
  const image = (key: string) => {
    const [repository, tag] = (cluster().images[key] ?? '').split(':');
    return { repository, tag };
  };
  const load = new Load({ url: release.url, host: hostOf('echo') });
  await release.upgrade({ haproxy: { image: image('haproxy-3.0') } });
  await firstAnswer(release.url, hostOf('echo'));
  await release.upgrade({});
  const report = await load.stop();
  console.log(`3.4 → 3.0 → 3.4: ${report.requests} requests, ${report.failures.length} not 200`);
  expect(report.failures).toStrictEqual([]);
});
