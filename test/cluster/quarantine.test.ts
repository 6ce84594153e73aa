/** An Ingress that cannot be served, among others that can (R6). */
import { beforeAll, expect, test } from 'vitest';
import { cluster, makeNamespace } from '../support/cluster.ts';
import { waitFor } from '../support/haproxy.ts';
import { install, type Installation } from '../support/installation.ts';
import { Load } from '../support/load.ts';
import { firstAnswer, hostOf, servedByAll, statusAt, workload } from '../support/workload.ts';

const { apply, get } = cluster();
const WAIT = { timeoutMs: 120_000 };

/** Requests that an annotation denies; HAProxy refuses a status that it does not know. */
const DENY = `{% cells one in resources.ingresses %}
{% set notes = one.metadata.annotations | default({}) %}
{% if notes["example.com/deny"] is defined %}
    http-request deny deny_status {{ notes["example.com/deny"] | token }} if { path /deny }
{% endif %}
{% endcells %}
`;

let release: Installation;
let namespace: string;

beforeAll(async () => {
  const templateSnippets = { 'request-300-deny': { template: DENY } };
  release = await install('quarantine', { controller: { config: { templateSnippets } } });
  namespace = await makeNamespace('shop');
  await apply(workload({ namespace, name: 'echo', className: release.name }));
  await servedByAll(release.url, hostOf('echo'));
});

const denying = (name: string, status: string): readonly object[] =>
  workload({ namespace, name, className: release.name }).map((object) => {
    const { kind, metadata } = object as { kind: string; metadata: object };
    const annotations = { 'example.com/deny': status };
    return kind === 'Ingress' ? { ...object, metadata: { ...metadata, annotations } } : object;
  });

interface EventObject {
  readonly reason: string;
  readonly note: string;
  /** RFC 3339 with microseconds. */
  readonly eventTime: string;
}

const quarantineEvent = async (name: string): Promise<EventObject | undefined> => {
  const selector = `regarding.kind=Ingress,regarding.name=${name}`;
  const { items } = await get<{ items: readonly EventObject[] }>([
    ...['events.v1.events.k8s.io', '-n', namespace, '--field-selector', selector],
  ]);
  return items.find(({ reason }) => reason === 'Quarantined');
};

/** The lines that a controller has logged. */
const logOf = async (pod: string): Promise<readonly { time: number; msg: string }[]> =>
  (await release.kubectl('logs', pod, '--tail=2000'))
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as { time: number; msg: string });

test('R6: an Ingress that HAProxy refuses is told, what came with it is served, and every answer is 200', async () => {
  const load = new Load({ url: release.url, host: hostOf('echo') });
  await apply([
    ...denying('bad', '999'),
    ...workload({ namespace, name: 'good', className: release.name }),
  ]);
  await firstAnswer(release.url, hostOf('good'));
  const event = await waitFor(() => quarantineEvent('bad'), { ...WAIT, what: 'the Event' });
  expect(event.note).toMatch(/^It is left out, .*999/);
  const refusal = (await logOf(await release.leader())).find(({ msg }) =>
    /^checked .*: refused/.test(msg),
  );
  const toldMs = Date.parse(event.eventTime) - (refusal?.time ?? 0);
  const { failures, requests } = await load.stop();
  console.log(
    `told ${toldMs} ms after the verdict; ${requests} requests, ${failures.length} not 200`,
  );
  expect(failures).toStrictEqual([]);
  // Two seconds on a machine of its own.
  expect(toldMs).toBeLessThan(20_000);
  expect(await statusAt(release.url, hostOf('bad'))).toBe(404);
});

test('R6: the next leader goes on with what is in quarantine, and nothing of it goes out', async () => {
  const before = await release.leader();
  // A follower looks every ten seconds.
  await new Promise((resolve) => setTimeout(resolve, 12_000));
  await release.kubectl('delete', 'pod', before);
  await waitFor(async () => ![before, ''].includes(await release.leader()), {
    ...WAIT,
    what: 'another leader',
  });
  await apply(workload({ namespace, name: 'later', className: release.name }));
  await firstAnswer(release.url, hostOf('later'));
  const log = await logOf(await release.leader());
  expect(log.filter(({ msg }) => /^checked .*: refused/.test(msg))).toStrictEqual([]);
  expect(await statusAt(release.url, hostOf('bad'))).toBe(404);
});

test('R6: a corrected Ingress is served', async () => {
  await apply(denying('bad', '403'));
  await firstAnswer(release.url, hostOf('bad'));
});
