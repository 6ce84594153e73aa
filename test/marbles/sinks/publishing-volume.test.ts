import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import {
  asyncScheduler,
  filter,
  interval,
  map,
  merge,
  NEVER,
  of,
  take,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import { expect, it } from 'vitest';
import { isType, type Notification } from '../../../src/ports.ts';
import type { Render } from '../../../src/render/render.ts';
import { publisher } from '../../../src/sinks/publisher.ts';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import { inVirtualTime } from '../../support/marbles.ts';
import { ModelApi } from '../../support/model-api.ts';
import {
  changed,
  ingress,
  ingressClass,
  service,
  slice,
  snapshotOf,
} from '../../support/objects.ts';
import { deploying, leads, observing } from '../../support/observing.ts';
import { libraryEngine, renderAll } from '../../support/rendered.ts';

const INGRESSES = 1_000;
const ENDPOINTS = 5;
const CHANGES_A_SECOND = 10;
const INTERVAL_S = 10;
const MINUTES = 1;

const nameOf = (index: number): string => `app-${String(index)}`;

/** Endpoints of an application; its first one is another one after each change. */
const endpointsOf = (index: number, change: number): KubeObject =>
  slice(nameOf(index), {
    endpoints: Array.from({ length: ENDPOINTS }, (_, endpoint) => {
      const host = endpoint === 0 ? change % 250 : endpoint;
      return `10.${String(endpoint === 0 ? 200 : endpoint)}.${String(index >> 8)}.${String((index + host) % 256)}`;
    }),
  });

/** What the fleet runs at each publication: by then a hundred endpoints have changed. */
const renders = async (): Promise<readonly Render[]> => {
  const engine = await libraryEngine();
  const applications = Array.from({ length: INGRESSES }, (_, index) => [
    ingress(nameOf(index), {
      rules: [[`${nameOf(index)}.example.com`, '/', `${nameOf(index)}:80`]],
    }),
    service(nameOf(index)),
    endpointsOf(index, 0),
  ]);
  let snapshot = snapshotOf([ingressClass('haptic'), ...applications.flat()]);
  const all = [renderAll(engine, snapshot)];
  for (let round = 1; round <= (MINUTES * 60) / INTERVAL_S; round += 1) {
    const slices = Array.from({ length: CHANGES_A_SECOND * INTERVAL_S }, (_, number) =>
      endpointsOf((round * 397 + number * 211) % INGRESSES, round),
    );
    snapshot = changed(snapshot, slices);
    all.push(renderAll(engine, snapshot));
  }
  return all;
};

/** Bytes that an hour of churn writes, after the first publication. */
const bytesAnHour = (all: readonly Render[], compressionThreshold: number): number => {
  const api = new ModelApi();
  const namespace = '/apis/haproxy-haptic.org/v1alpha1/namespaces/haptic';
  api.put(`${namespace}/haproxytemplateconfigs/haptic-config`, { metadata: { uid: 'uid' } });
  let [publications, bytes] = [0, 0];
  inVirtualTime(() => {
    const desired$ = interval(INTERVAL_S * 1_000).pipe(
      take(all.length),
      map((index): Notification => deploying(all[index])),
    );
    observing(
      merge(of(leads()), desired$, NEVER),
      publisher({
        client: api,
        random: () => 0,
        owner: { namespace: 'haptic', name: 'haptic-config' },
        compress: (texts) => of(new Uint8Array(gzipSync([...texts].join('')))),
        publishing$: of({ enabled: true, compressionThreshold }),
        now: () => asyncScheduler.now(),
      }),
    )
      .pipe(
        filter(isType('Written')),
        tap(() => (publications += 1)),
        // The first publication writes everything once.
        filter(() => asyncScheduler.now() > 1.5 * INTERVAL_S * 1_000),
        takeUntil(timer((all.length + 1) * INTERVAL_S * 1_000)),
      )
      .subscribe((written) => (bytes += written.bytes));
  });
  expect(publications).toBeGreaterThan(all.length);
  return (bytes * 60) / MINUTES;
};

it('R21, S49: endpoint churn at 1,000 Ingresses writes as many bytes an hour as docs/operations.md says', async () => {
  const all = await renders();
  const compressed = bytesAnHour(all, 65_536) / 1e6;
  const plain = bytesAnHour(all, 1024 * 1024) / 1e6;
  const size = (all[0]?.plan.config.size ?? 0) / 1e3;
  console.log(
    `published under ${String(CHANGES_A_SECOND)} endpoint changes a second, ${String(INGRESSES)} Ingresses, main file ${size.toFixed(0)} kB: ${compressed.toFixed(0)} MB an hour compressed, ${plain.toFixed(0)} MB plain`,
  );
  const documented = readFileSync(new URL('../../../docs/operations.md', import.meta.url), 'utf8');
  const [, few = '', many = ''] =
    /write about (\d+) MB an hour to\s+the API server compressed and (\d+) MB plain/.exec(
      documented,
    ) ?? [];
  expect(Math.abs(compressed / Number(few) - 1)).toBeLessThan(0.25);
  expect(Math.abs(plain / Number(many) - 1)).toBeLessThan(0.25);
}, 60_000);
