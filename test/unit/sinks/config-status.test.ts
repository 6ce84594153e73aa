import { gzipSync } from 'node:zlib';
import { NEVER, type Observable, of, Subject, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type KubeClient, KubeError, type KubeRequest } from '../../../src/kube/client.ts';
import type { ControllerStreams, Notification, Observer } from '../../../src/ports.ts';
import type { ObjectRef } from '../../../src/snapshot/objects.ts';
import type { Problem } from '../../../src/snapshot/problem.ts';
import { configStatus } from '../../../src/sinks/config-status.ts';
import type { Quarantined } from '../../../src/quarantine/quarantine.ts';
import type { StoredQuarantine } from '../../../src/quarantine/stored.ts';
import { storeAcceptedConfig } from '../../../src/sinks/store-accepted-config.ts';
import { storeQuarantine } from '../../../src/sinks/store-quarantine.ts';
import { loadKeptQuarantine } from '../../../src/streams/kept-quarantine.ts';
import { loadAcceptedConfig } from '../../../src/streams/accepted-config.ts';

const OBJECT: ObjectRef = {
  apiVersion: 'haproxy-haptic.org/v1alpha1',
  kind: 'HAProxyTemplateConfig',
  namespace: 'haptic',
  name: 'main',
  uid: 'u1',
};

const problem = (reason: string, message = 'It is wrong.'): Problem => ({
  severity: 'error',
  reason,
  message,
  nextStep: 'Mend it.',
});

const loaded = (observedGeneration: number, spec: unknown = {}): Notification => ({
  type: 'ConfigLoaded',
  generation: 'digest',
  watched: [],
  object: OBJECT,
  observedGeneration,
  spec,
});

const refused = (observedGeneration: number, ...problems: readonly Problem[]): Notification => ({
  type: 'ConfigRefused',
  problems,
  object: OBJECT,
  observedGeneration,
});

const leads: Notification = { type: 'Leadership', leadership: { leading: true, epoch: 1 } };
const follows: Notification = { type: 'Leadership', leadership: { leading: false } };

type Members = Readonly<Record<string, unknown>>;

/** One object of an API server: what is applied to it is what it holds. */
class OneObject implements KubeClient {
  readonly writes: KubeRequest[] = [];
  #found: Members | undefined;

  constructor(found?: Members) {
    this.#found = found;
  }

  request(request: KubeRequest): Observable<unknown> {
    if (request.method === 'GET') {
      return this.#found === undefined
        ? throwError(() => new KubeError('not-found', 'no such object'))
        : of(this.#found);
    }
    this.writes.push(request);
    this.#found = { ...this.#found, ...(request.body as Members) };
    return of(this.#found);
  }

  stream(): Observable<unknown> {
    return NEVER;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  get statuses(): readonly unknown[] {
    return this.writes.map(({ body }) => (body as Members)['status']);
  }
}

/** What an observer tells while these events happen; the stream stays open. */
const observed = (
  observe: Observer,
  events: readonly Notification[],
  notifications$ = new Subject<Notification>(),
): Notification[] => {
  const told: Notification[] = [];
  observe({ notifications$ } as unknown as ControllerStreams).subscribe((event) =>
    told.push(event),
  );
  for (const event of events) notifications$.next(event);
  return told;
};

const statusOver = (client: KubeClient, events: readonly Notification[]): Notification[] => {
  let minute = 0;
  const now = (): string => `2026-01-01T00:0${String((minute += 1))}:00Z`;
  return observed(configStatus({ client, random: () => 0, now }), events);
};

const FOUND = { metadata: { namespace: 'haptic', name: 'main', uid: 'u1' } };

describe('configStatus', () => {
  it('writes what became of the newest generation, by server-side apply on the status', () => {
    const api = new OneObject(FOUND);
    statusOver(api, [leads, refused(2, problem('InvalidConfig'), problem('Other'))]);
    expect(api.writes[0]).toMatchObject({
      method: 'PATCH',
      path: '/apis/haproxy-haptic.org/v1alpha1/namespaces/haptic/haproxytemplateconfigs/main/status',
      contentType: 'application/apply-patch+yaml',
      query: { fieldManager: 'haptic', force: true },
      body: { metadata: { uid: 'u1' } },
    });
    expect(api.statuses).toStrictEqual([
      {
        observedGeneration: 2,
        validationStatus: 'Invalid',
        validationMessage: 'InvalidConfig: It is wrong. Mend it.',
        validationErrors: ['InvalidConfig: It is wrong. Mend it.', 'Other: It is wrong. Mend it.'],
        conditions: [
          {
            type: 'Accepted',
            status: 'False',
            observedGeneration: 2,
            reason: 'InvalidConfig',
            message: 'InvalidConfig: It is wrong. Mend it. (and 1 more)',
            lastTransitionTime: '2026-01-01T00:01:00Z',
          },
        ],
      },
    ]);
  });

  it('moves the time of the condition only with its status, and writes nothing that is there', () => {
    const api = new OneObject(FOUND);
    statusOver(api, [
      leads,
      loaded(1),
      loaded(1),
      loaded(2),
      refused(3, problem('R')),
      refused(4, problem('S')),
    ]);
    const conditions = api.statuses.map(
      (status) => (status as { conditions: readonly Members[] }).conditions[0],
    );
    expect(
      conditions.map((one) => [one?.['observedGeneration'], one?.['lastTransitionTime']]),
    ).toStrictEqual([
      [1, '2026-01-01T00:01:00Z'],
      [2, '2026-01-01T00:01:00Z'],
      [3, '2026-01-01T00:04:00Z'],
      [4, '2026-01-01T00:04:00Z'],
    ]);
  });

  it('says nothing about the newest generation when an earlier one from the store serves', () => {
    const api = new OneObject(FOUND);
    const stored: Notification = { type: 'ConfigLoaded', generation: 'digest', watched: [] };
    statusOver(api, [leads, refused(2, problem('R')), stored]);
    expect(api.writes).toHaveLength(1);
  });

  it('is bounded, whatever is wrong', () => {
    const api = new OneObject(FOUND);
    const many = Array.from({ length: 50 }, () =>
      problem('No reason for Kubernetes!', 'x'.repeat(9_999)),
    );
    statusOver(api, [leads, refused(1, ...many)]);
    expect(JSON.stringify(api.statuses).length).toBeLessThan(30_000);
    expect(api.statuses[0]).toMatchObject({ conditions: [{ reason: 'Refused' }] });
  });

  it('writes as the leader only: what it learned before when the term begins, nothing after it (G10)', () => {
    const api = new OneObject(FOUND);
    statusOver(api, [loaded(1), follows]);
    expect(api.writes).toHaveLength(0);
    statusOver(api, [loaded(1), leads, follows, loaded(2)]);
    expect(api.statuses).toMatchObject([{ observedGeneration: 1 }]);
  });

  it('leaves another object of the same name alone, and one that is gone', () => {
    const other = new OneObject({ metadata: { ...FOUND.metadata, uid: 'u2' } });
    const gone = new OneObject();
    for (const api of [other, gone]) {
      expect(statusOver(api, [leads, loaded(1)])).toStrictEqual([]);
      expect(api.writes).toHaveLength(0);
    }
  });

  it('aborts a write in flight when leadership is lost (R13)', () => {
    const pending = new Subject<unknown>();
    const api = new OneObject(FOUND);
    api.request = () => pending;
    const notifications$ = new Subject<Notification>();
    const told = observed(
      configStatus({ client: api, random: () => 0, now: () => '2026-01-01T00:00:00Z' }),
      [leads, loaded(1)],
      notifications$,
    );
    expect(pending.observed).toBe(true);
    notifications$.next(follows);
    expect(pending.observed).toBe(false);
    expect(told).toStrictEqual([]);
  });
});

describe('storeAcceptedConfig', () => {
  const spec = { haproxyConfig: { template: 'global' } };
  const store = (api: KubeClient, events: readonly Notification[]): Notification[] =>
    observed(storeAcceptedConfig({ client: api, random: () => 0 }), events);
  const load = (api: KubeClient): unknown => {
    let found: unknown;
    loadAcceptedConfig(api, { namespace: 'haptic', name: 'main' }).subscribe((object) => {
      found = object;
    });
    return found;
  };

  it('keeps the newest accepted configuration for whoever starts later', () => {
    const api = new OneObject();
    expect(load(api)).toBeUndefined();
    store(api, [leads, loaded(1), loaded(7, spec)]);
    expect(api.writes.at(-1)).toMatchObject({
      path: '/api/v1/namespaces/haptic/secrets/main-accepted',
      body: { metadata: { ownerReferences: [{ uid: 'u1', name: 'main' }] } },
    });
    expect(load(api)).toStrictEqual({
      apiVersion: 'haproxy-haptic.org/v1alpha1',
      kind: 'HAProxyTemplateConfig',
      metadata: { namespace: 'haptic', name: 'main', generation: 7 },
      spec,
    });
  });

  it('stores nothing that comes from the store, and nothing as a follower', () => {
    const api = new OneObject();
    store(api, [leads, { type: 'ConfigLoaded', generation: 'digest', watched: [] }]);
    store(api, [loaded(1)]);
    expect(api.writes).toHaveLength(0);
  });

  it('tells a configuration that does not fit', () => {
    const random = Array.from({ length: 400_000 }, (_, at) =>
      ((at * 2_654_435_761) >>> 3).toString(36),
    );
    const told = store(new OneObject(), [leads, loaded(1, { random: random.join('') })]);
    expect(told).toMatchObject([
      { type: 'WriteFailed', problem: { reason: 'ConfigTooLargeToKeep' } },
    ]);
  });

  it('takes a Secret that somebody else wrote for none', () => {
    const secret = (data: unknown) => new OneObject({ metadata: { name: 'main-accepted' }, data });
    const bomb = Buffer.from('not gzip').toString('base64');
    expect(
      [{}, { 'spec.json.gz': 5 }, { 'spec.json.gz': bomb }].map((data) => load(secret(data))),
    ).toStrictEqual([undefined, undefined, undefined]);
  });
});

describe('storeQuarantine', () => {
  const kept: StoredQuarantine = { format: 1, generation: 'digest', objects: [] };
  const cause = { severity: 'error', reason: 'R', message: 'm', nextStep: '' } as const;
  const one: Quarantined = {
    ...{ object: OBJECT, substitutes: [], stand: 'nothing', reads: new Set(), cause },
    foundBy: 'check',
  };
  const held: Notification = { type: 'Quarantine', objects: [one], stored: () => kept };
  const store = (api: KubeClient, events: readonly Notification[]): Notification[] =>
    observed(storeQuarantine({ client: api, random: () => 0 }), events);
  const load = (api: KubeClient): readonly StoredQuarantine[] => {
    const found: StoredQuarantine[] = [];
    loadKeptQuarantine(api, { namespace: 'haptic', name: 'main' }).subscribe((one) => {
      found.push(one);
    });
    return found;
  };

  it('R6: keeps what is in quarantine for whoever leads next', () => {
    const api = new OneObject();
    expect(load(api)).toStrictEqual([]);
    store(api, [leads, loaded(1), held]);
    expect(api.writes).toMatchObject([
      {
        path: '/api/v1/namespaces/haptic/secrets/main-quarantine',
        body: { metadata: { ownerReferences: [{ uid: 'u1', name: 'main' }] } },
      },
    ]);
    expect(load(api)).toStrictEqual([kept]);
  });

  it('R13: writes nothing as a follower, and what it found as one when it leads', () => {
    const api = new OneObject();
    store(api, [loaded(1), held]);
    expect(api.writes).toHaveLength(0);
    store(api, [loaded(1), held, leads]);
    expect(api.writes).toHaveLength(1);
  });

  it('tells a quarantine that does not fit', () => {
    const random = Array.from({ length: 400_000 }, (_, at) =>
      ((at * 2_654_435_761) >>> 3).toString(36),
    );
    const large = { ...kept, generation: random.join('') };
    const told = store(new OneObject(), [leads, loaded(1), { ...held, stored: () => large }]);
    expect(told).toMatchObject([
      { type: 'WriteFailed', problem: { reason: 'QuarantineTooLargeToKeep' } },
    ]);
  });

  it('takes what somebody else wrote for none', () => {
    const packed = (value: unknown) => gzipSync(JSON.stringify(value)).toString('base64');
    const secret = (value: unknown) =>
      new OneObject({ metadata: {}, data: { 'quarantine.json.gz': packed(value) } });
    expect(
      [5, {}, { objects: [], generation: 'g' }].map((value) => load(secret(value))),
    ).toStrictEqual([[], [], []]);
  });
});
