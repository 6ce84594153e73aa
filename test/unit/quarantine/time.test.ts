/** What ends a quarantine, and what is tried again by time. */
import { describe, expect, it } from 'vitest';
import { sha256 } from '../../../src/digest.ts';
import { nextDue, quarantineStep } from '../../../src/quarantine/machine.ts';
import {
  NO_QUARANTINE,
  type Quarantined,
  withObjects,
} from '../../../src/quarantine/quarantine.ts';
import { dueAgain, nextReturn, release } from '../../../src/quarantine/release.ts';
import { initialQuarantine, type QuarantineEvent } from '../../../src/quarantine/state.ts';
import { applyBatch, emptySnapshot } from '../../../src/snapshot/apply-batch.ts';
import { metadataOf } from '../../../src/snapshot/content.ts';
import { type KubeObject, objectRef } from '../../../src/snapshot/objects.ts';
import { kubeObject, watched } from '../../support/watched.ts';

const RESOURCES = [watched('things'), watched('secrets')];
const THING = kubeObject('default/a', { kind: 'Thing' });
const snapshot = applyBatch(
  emptySnapshot(RESOURCES),
  new Map([['things', new Map([['*', { type: 'Replaced', objects: [THING] }]])]]),
);
const cause = { severity: 'error', reason: 'R', message: 'm', nextStep: '' } as const;

const ONE: Quarantined = {
  object: objectRef(THING),
  substitutes: [{ resource: 'things', key: 'default/a', refused: THING, instead: undefined }],
  stand: 'nothing',
  reads: new Set([JSON.stringify(['get', 'secrets', 'default', 'cert'])]),
  ...{ cause, foundBy: 'check' },
};
const quarantine = withObjects(NO_QUARANTINE, [ONE]);

const secret = (resourceVersion: string): KubeObject =>
  kubeObject('default/cert', { kind: 'Secret', metadata: { uid: 'u', resourceVersion } });

describe('release', () => {
  it('R6: is no matter of content that is dropped because nobody looks at it', () => {
    const after = (changed: KubeObject) => {
      const place = { resource: 'secrets', key: 'default/cert' };
      const changes = [{ ...place, before: secret('1'), after: changed }];
      const held = { quarantine, returns: new Map() };
      return release(held, { changes, snapshot, now: 0, watched: RESOURCES }).quarantine.size;
    };
    expect(after(metadataOf(secret('1')))).toBe(1);
    expect(after(metadataOf(secret('2')))).toBe(0);
    expect(after({ ...secret('2'), data: { key: 'new' } })).toBe(0);
  });

  it('R6: lets out by time who was found by a search, each time later', () => {
    const returns = dueAgain(new Map(), [ONE], 0);
    expect(nextReturn({ quarantine, returns })).toBe(60_000);
    const news = { changes: [], snapshot, watched: RESOURCES };
    expect(release({ quarantine, returns }, { ...news, now: 59_999 }).quarantine.size).toBe(1);
    const out = release({ quarantine, returns }, { ...news, now: 60_000 });
    expect(out.quarantine.size).toBe(0);
    expect(nextReturn({ quarantine, returns: dueAgain(out.returns, [ONE], 0) })).toBe(240_000);
  });
});

describe('a search that found nobody', () => {
  it('R6: is begun again a minute later, also when nothing happens', () => {
    const facts = { generation: 'g', watched: RESOURCES, protective: new Set<string>() };
    const reads = { readsFor: () => () => new Set<string>(), digest: sha256 };
    const events: readonly QuarantineEvent[] = [
      { type: 'watched', snapshot, now: 0 },
      { type: 'failed', snapshot, problems: [cause] },
    ];
    const failed = events.reduce(quarantineStep, initialQuarantine({ ...facts, ...reads }));
    const { wanted } = failed;
    if (wanted === undefined) throw new Error('nothing is searched');
    const idle = quarantineStep(failed, { type: 'searched', wanted, found: undefined, now: 1_000 });
    expect(idle.wanted).toBeUndefined();
    expect(nextDue(idle)).toBe(61_000);
    expect(quarantineStep(idle, { type: 'due', now: 60_999 }).wanted).toBeUndefined();
    expect(quarantineStep(idle, { type: 'due', now: 61_000 }).wanted).toBeDefined();
  });
});
