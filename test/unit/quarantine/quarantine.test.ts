/** Who is blamed, what stands in for them, what is told and what is kept. */
import { describe, expect, it } from 'vitest';
import { sha256 } from '../../../src/digest.ts';
import { blame, type Charge, quarantined } from '../../../src/quarantine/blame.ts';
import {
  NO_QUARANTINE,
  placeId,
  type Quarantined,
  withObjects,
} from '../../../src/quarantine/quarantine.ts';
import { closedVersion } from '../../../src/quarantine/stand-in.ts';
import { fromStored, readStored, toStored } from '../../../src/quarantine/stored.ts';
import { quarantineProblem } from '../../../src/quarantine/tell.ts';
import { type KubeObject, objectRef } from '../../../src/snapshot/objects.ts';
import type { Problem } from '../../../src/snapshot/problem.ts';
import { createRouting } from '../../../src/routing/routing.ts';
import {
  applyBatch,
  emptySnapshot,
  type IndexedSnapshot,
} from '../../../src/snapshot/apply-batch.ts';
import { ingress, service } from '../../support/objects.ts';
import { kubeObject, watched } from '../../support/watched.ts';

const RESOURCES = ['ingresses', 'services', 'secrets', 'aliases'].map((name) => watched(name));

const snapshotOf = (objects: Readonly<Record<string, readonly KubeObject[]>>): IndexedSnapshot =>
  applyBatch(
    emptySnapshot(RESOURCES),
    new Map(
      Object.entries(objects).map(([name, all]) => [
        name,
        new Map([['*', { type: 'Replaced', objects: all }]]),
      ]),
    ),
  );

const web = (host: string, annotations: Readonly<Record<string, string>> = {}): KubeObject =>
  ingress('web', {
    rules: [[host, '/', 'web:80']],
    tls: [['cert', host]],
    annotations,
  });

const problemOf = (object: KubeObject, source = 'template'): Problem => ({
  severity: 'error',
  reason: 'TemplateError',
  message: 'It is wrong.',
  nextStep: 'Correct it.',
  object: objectRef(object),
  place: { source, line: 1 },
});

const charge = (bad: IndexedSnapshot, members: Partial<Charge> = {}): Charge => ({
  ...{ bad, good: undefined, now: bad, quarantine: NO_QUARANTINE, foundBy: 'render' },
  ...{ protective: new Set(['protection']), readsFor: () => () => new Set<string>() },
  ...{ cleared: new Map(), goodIsOfAnother: false },
  ...members,
});

const guilty = (problem: Problem, given: Charge): Quarantined => {
  const [one] = blame([problem], given).guilty;
  if (one === undefined) throw new Error('nobody is guilty');
  return one;
};

describe('blame', () => {
  it('R6: puts nothing in place of an object that was never served', () => {
    const bad = snapshotOf({ ingresses: [web('a')] });
    expect(guilty(problemOf(web('a')), charge(bad))).toMatchObject({
      stand: 'nothing',
      substitutes: [{ resource: 'ingresses', key: 'default/web', instead: undefined }],
    });
  });

  it('R6: puts the last accepted version in its place', () => {
    const [before, after] = [web('a'), web('b')];
    const good = snapshotOf({ ingresses: [before] });
    const bad = snapshotOf({ ingresses: [after] });
    expect(guilty(problemOf(after), charge(bad, { good }))).toMatchObject({
      stand: 'accepted',
      substitutes: [{ refused: after, instead: before }],
    });
  });

  it('R6: puts nothing in place of an earlier version that fails as well', () => {
    const [before, after] = [web('a'), web('b')];
    const good = snapshotOf({ ingresses: [before] });
    const bad = snapshotOf({ ingresses: [after] });
    const first = guilty(problemOf(after), charge(bad, { good }));
    const quarantine = withObjects(NO_QUARANTINE, [first]);
    const second = guilty(problemOf(before), charge(good, { good, quarantine }));
    expect(second).toMatchObject({
      stand: 'nothing',
      substitutes: [{ refused: after, instead: undefined }],
    });
  });

  it('R6: treats an object that is watched under two names as one', () => {
    const bad = snapshotOf({ ingresses: [web('a')], aliases: [web('a')] });
    const { substitutes } = guilty(problemOf(web('a')), charge(bad));
    expect(substitutes.map(placeId)).toStrictEqual([
      'ingresses default/web',
      'aliases default/web',
    ]);
  });

  it('does not blame what is served as it is, nor what was blamed in vain', () => {
    const bad = snapshotOf({ ingresses: [web('a')] });
    const nobody = { guilty: [], innocent: [], outdated: false };
    const object = bad.store('ingresses').get('default', 'web');
    const cleared = new Map([['ingresses default/web', object]]);
    expect(blame([problemOf(web('a'))], charge(bad, { good: bad }))).toStrictEqual(nobody);
    expect(blame([problemOf(web('a'))], charge(bad, { cleared }))).toStrictEqual(nobody);
    expect(blame([{ ...problemOf(web('a')), severity: 'warning' }], charge(bad))).toStrictEqual(
      nobody,
    );
  });

  it('calls who is blamed with nothing in its place innocent', () => {
    const one = guilty(problemOf(web('a')), charge(snapshotOf({ ingresses: [web('a')] })));
    const quarantine = withObjects(NO_QUARANTINE, [one]);
    const without = charge(snapshotOf({}), { quarantine });
    expect(blame([problemOf(web('a'))], without).innocent).toStrictEqual([one]);
  });

  it('R6: has an Ingress read the Services and Secrets that it names, whether they exist or not', () => {
    const { reads } = guilty(problemOf(web('a')), charge(snapshotOf({ ingresses: [web('a')] })));
    expect([...reads].map((read) => JSON.parse(read) as unknown)).toStrictEqual([
      ['get', 'services', 'default', 'web'],
      ['get', 'secrets', 'default', 'cert'],
    ]);
  });
});

describe('protection', () => {
  const [before, after] = [web('a.example'), web('a.example', { protect: 'badly' })];
  const good = snapshotOf({ ingresses: [before] });
  const bad = snapshotOf({ ingresses: [after] });

  it('R6: lets no earlier version without it stand in', () => {
    expect(guilty(problemOf(after, 'protection'), charge(bad, { good })).stand).toBe('closed');
    const placeless = Object.fromEntries(
      Object.entries(problemOf(after)).filter(([name]) => name !== 'place'),
    ) as unknown as Problem;
    expect(guilty(placeless, charge(bad, { good })).stand).toBe('closed');
    const unprotected = charge(bad, { good, protective: new Set() });
    expect(guilty(placeless, unprotected).stand).toBe('accepted');
  });

  it('R6: decides when an object has other faults, too, whichever comes first', () => {
    const problems = [problemOf(after), problemOf(after, 'protection')];
    for (const order of [problems, problems.toReversed()]) {
      expect(blame(order, charge(bad, { good })).guilty).toMatchObject([{ stand: 'closed' }]);
    }
  });

  it('R6: lets nothing unprotected stand in for a closed one that a search finds once more', () => {
    const one = guilty(problemOf(after, 'protection'), charge(bad, { good }));
    const quarantine = withObjects(NO_QUARANTINE, [one]);
    const differences = [{ resource: 'ingresses', key: 'default/web', before }];
    const accused = { object: one.object, differences, problems: [problemOf(after)] };
    expect(quarantined([accused], charge(bad, { good, quarantine }))).toMatchObject([
      { stand: 'nothing', substitutes: [{ instead: undefined }] },
    ]);
  });

  it('R6: blames a closed Ingress that was let out and is as bad as before', () => {
    const closed = closedVersion({
      ...after,
      metadata: { ...after.metadata, resourceVersion: '2' },
    });
    const again = { ...after, metadata: { ...after.metadata, resourceVersion: '2' } };
    const served = snapshotOf({ ingresses: closed === undefined ? [] : [closed] });
    const now = snapshotOf({ ingresses: [again] });
    expect(guilty(problemOf(again, 'protection'), charge(now, { good: served })).stand).toBe(
      'closed',
    );
  });

  it('R6: keeps all routes of a closed Ingress, and leads them nowhere', () => {
    const closed = closedVersion(after);
    const routing = createRouting({
      ingressClass: { name: 'haptic', controller: 'c' },
      standalone: true,
      inspectKeyPair: () => ({ ok: false, message: 'none' }),
    });
    const { hosts } = routing.route(
      snapshotOf({ ingresses: closed === undefined ? [] : [closed] }),
    );
    expect(hosts.get('a.example')?.prefix).toMatchObject([
      { path: '', backend: 'haptic-unavailable' },
    ]);
    expect(closed?.metadata.annotations).toBeUndefined();
  });

  it('R6: takes a Service away, so that its routes answer 503', () => {
    const bad = snapshotOf({ services: [service('web')] });
    expect(guilty(problemOf(service('web'), 'protection'), charge(bad))).toMatchObject({
      stand: 'closed',
      substitutes: [{ instead: undefined }],
    });
  });
});

describe('what is told', () => {
  it.each([
    ['accepted', /^It is served as it was accepted last, .*: It is wrong\.$/],
    ['closed', /^Its routes answer 503, .*: It is wrong\.$/],
    ['nothing', /^It is left out, .*: It is wrong\.$/],
  ] as const)('S17: says what an object with %s in its place means', (stand, message) => {
    const one = guilty(problemOf(web('a')), charge(snapshotOf({ ingresses: [web('a')] })));
    const told = quarantineProblem({ ...one, stand });
    expect(told).toMatchObject({ reason: 'Quarantined', severity: 'error', object: one.object });
    expect(told.message).toMatch(message);
    expect(told.nextStep).toMatch(/^Correct it\. /);
  });
});

describe('what is kept', () => {
  const secret = (value: string): KubeObject =>
    kubeObject('default/cert', { kind: 'Secret', value });
  const [before, after] = [web('a'), web('b')];
  const good = snapshotOf({ ingresses: [before], secrets: [secret('old')] });
  const bad = snapshotOf({ ingresses: [after], secrets: [secret('new')] });
  const settings = { generation: 'g', watched: bad, digest: sha256 };
  const both = [problemOf(after), problemOf(secret('new'))].map((problem) =>
    guilty(problem, charge(bad, { good })),
  );
  const stored = toStored(both, settings);
  const restored = (snapshot: IndexedSnapshot) =>
    fromStored(JSON.parse(JSON.stringify(stored)) as typeof stored, snapshot, sha256);

  it('R6: holds for the same versions, read back from text', () => {
    expect(restored(bad).get('ingresses default/web')).toStrictEqual(both[0]);
  });

  it('R6: holds no longer for another version, or when something that it reads is another', () => {
    const changed = snapshotOf({ ingresses: [web('c')], secrets: [secret('new')] });
    expect(restored(changed).has('ingresses default/web')).toBe(false);
    const cured = snapshotOf({
      ingresses: [after],
      secrets: [secret('new')],
      services: [service('web')],
    });
    expect(restored(cured).has('ingresses default/web')).toBe(false);
  });

  it('R6: never holds a Secret', () => {
    expect(JSON.stringify(stored)).not.toContain('old');
    expect(JSON.stringify(stored)).not.toContain('"new"');
    expect(restored(bad).get('secrets default/cert')).toMatchObject({
      stand: 'nothing',
      substitutes: [{ instead: undefined }],
    });
  });

  it('R6: is read without what is not as it should be', () => {
    const whole = JSON.parse(JSON.stringify(stored)) as typeof stored;
    expect(readStored(whole)).toStrictEqual(whole);
    const [first] = whole.objects;
    const [place] = first?.substitutes ?? [];
    const broken: readonly unknown[] = [
      null,
      {},
      { ...first, cause: undefined },
      { ...first, stand: 'open' },
      { ...first, reads: [['no JSON', 'x']] },
      { ...first, reads: 1 },
      { ...first, substitutes: [{ ...place, key: 'default/another' }] },
      { ...first, substitutes: [{ ...place, refused: 1 }] },
    ];
    expect(readStored({ ...whole, objects: [...broken, first] })?.objects).toStrictEqual([first]);
    expect(readStored({ ...whole, objects: 1 })?.objects).toStrictEqual([]);
    for (const other of [undefined, 5, { ...whole, format: 2 }, { ...whole, generation: 1 }]) {
      expect(readStored(other)).toBeUndefined();
    }
  });
});
