import { beforeEach, describe, expect, it } from 'vitest';
import { PersistentMap } from '../../../src/cells/persistent-map.ts';
import {
  type ContentOutcome,
  hasContent,
  metadataOf,
  type Need,
  unreadableReason,
} from '../../../src/snapshot/content.ts';
import { initialSnapshots, type SnapshotState, snapshotStep } from '../../../src/snapshot/fold.ts';
import type { ResourceChanges } from '../../../src/snapshot/fold.ts';
import { REPLACEMENT_KEY } from '../../../src/snapshot/folded-changes.ts';
import { type KubeObject, objectKey } from '../../../src/snapshot/objects.ts';
import { needKeyOf, OnDemandContent } from '../../../src/snapshot/on-demand.ts';
import type { WatchEvent } from '../../../src/snapshot/watch.ts';
import { kubeObject, watched } from '../../support/watched.ts';

const WATCHED = [watched('secrets', { store: 'on-demand' }), watched('services')];

const secret = (name: string, version: string, uid = name): KubeObject =>
  kubeObject(`shop/${name}`, {
    kind: 'Secret',
    metadata: { uid, resourceVersion: version },
    data: { version },
  });
const need = (name: string): Need => ({ resource: 'secrets', key: `shop/${name}` });
const found = (object: KubeObject): ContentOutcome => ({ type: 'Found', object });

let state: SnapshotState;
let content: OnDemandContent;

beforeEach(() => {
  state = initialSnapshots(WATCHED);
  content = new OnDemandContent(['secrets'], (resource, key) =>
    state.gathered.watched.get(resource)?.store.byKey(key),
  );
});

const enter = (batch: readonly ResourceChanges[]): void => {
  state = snapshotStep(state, batch);
};
const watch = (event: WatchEvent): void => {
  const key =
    event.type === 'Replaced'
      ? REPLACEMENT_KEY
      : event.type === 'Deleted'
        ? event.key
        : objectKey(event.object);
  enter([content.changed({ resource: 'secrets', changes: new Map([[key, event]]) })]);
};
const list = (...objects: KubeObject[]): void =>
  watch({ type: 'Replaced', objects: objects.map(metadataOf) });
const change = (object: KubeObject): void =>
  watch({ type: 'Upserted', object: metadataOf(object) });
const remove = (name: string): void => watch({ type: 'Deleted', key: `shop/${name}` });
const needs = (...names: string[]): void =>
  enter(
    content.needed(PersistentMap.from(names.map((name) => [needKeyOf(need(name)), need(name)]))),
  );
const asked = (): readonly string[] => content.starts().map(({ key }) => key);
const answer = (name: string, outcome: ContentOutcome): void => {
  const given = content.answered(need(name), outcome);
  if (given !== undefined) enter(content.shows([given]));
};
const shown = (name: string): unknown => {
  const object = state.gathered.store('secrets').get('shop', name);
  if (object === undefined) return 'absent';
  return hasContent(object) ? object['data'] : (unreadableReason(object) ?? 'metadata');
};

describe('OnDemandContent', () => {
  it('asks only for what is needed, and shows its content', () => {
    list(secret('a', '1'), secret('b', '1'));
    expect(asked()).toEqual([]);
    needs('a');
    expect(asked()).toEqual(['shop/a']);
    answer('a', found(secret('a', '1')));
    expect([shown('a'), shown('b')]).toEqual([{ version: '1' }, 'metadata']);
    expect(asked()).toEqual([]);
  });

  it('shows the old content of what changes until the new one is there', () => {
    list(secret('a', '1'));
    needs('a');
    asked();
    answer('a', found(secret('a', '1')));
    change(secret('a', '2'));
    expect(shown('a')).toEqual({ version: '1' });
    expect(asked()).toEqual(['shop/a']);
    answer('a', found(secret('a', '2')));
    expect(shown('a')).toEqual({ version: '2' });
  });

  it('asks again for what changed while it was asked for, and shows the newer content meanwhile', () => {
    list(secret('a', '1'));
    needs('a');
    asked();
    change(secret('a', '3'));
    expect(asked()).toEqual([]);
    answer('a', found(secret('a', '2')));
    expect(shown('a')).toEqual({ version: '2' });
    expect(asked()).toEqual(['shop/a']);
  });

  it('takes an answer of the newest version, however early it was asked for', () => {
    list(secret('a', '1'));
    needs('a');
    asked();
    change(secret('a', '2'));
    answer('a', found(secret('a', '2')));
    expect([shown('a'), asked()]).toEqual([{ version: '2' }, []]);
  });

  it('shows nothing of an earlier life', () => {
    list(secret('a', '1', 'first'));
    needs('a');
    asked();
    remove('a');
    change(secret('a', '5', 'second'));
    answer('a', found(secret('a', '1', 'first')));
    expect(shown('a')).toBe('absent');
    expect(asked()).toEqual(['shop/a']);
    answer('a', found(secret('a', '5', 'second')));
    expect(shown('a')).toEqual({ version: '5' });
  });

  it('does not bring back what was deleted between answer and snapshot', () => {
    list(secret('a', '1'));
    needs('a');
    asked();
    const given = content.answered(need('a'), found(secret('a', '1')));
    remove('a');
    enter(content.shows(given === undefined ? [] : [given]));
    expect(shown('a')).toBe('absent');
  });

  it('drops the content of what nobody needs any more, also when the answer comes afterwards', () => {
    list(secret('a', '1'), secret('b', '1'));
    needs('a', 'b');
    asked();
    answer('a', found(secret('a', '1')));
    const late = content.answered(need('b'), found(secret('b', '1')));
    needs();
    enter(content.shows(late === undefined ? [] : [late]));
    expect([shown('a'), shown('b')]).toEqual(['metadata', 'metadata']);
  });

  it('takes what is gone for deleted, before the watch says so', () => {
    list(secret('a', '1'));
    needs('a');
    asked();
    answer('a', { type: 'Gone' });
    expect([shown('a'), asked()]).toEqual(['absent', []]);
  });

  it('says that something is unreadable, and asks again when it is told to', () => {
    list(secret('a', '1'));
    needs('a');
    asked();
    answer('a', { type: 'Unreadable', reason: 'forbidden' });
    expect([shown('a'), asked()]).toEqual(['forbidden', []]);
    content.again(need('a'));
    expect(asked()).toEqual(['shop/a']);
    answer('a', found(secret('a', '1')));
    expect(shown('a')).toEqual({ version: '1' });
  });

  it('keeps the content it has when the newer one is unreadable', () => {
    list(secret('a', '1'));
    needs('a');
    asked();
    answer('a', found(secret('a', '1')));
    change(secret('a', '2'));
    asked();
    answer('a', { type: 'Unreadable', reason: 'timeout' });
    expect(shown('a')).toEqual({ version: '1' });
  });

  it('asks for nothing after a new list that brings the same versions, and forgets what it lacks', () => {
    list(secret('a', '1'), secret('b', '1'));
    needs('a', 'b');
    asked();
    answer('a', found(secret('a', '1')));
    answer('b', found(secret('b', '1')));
    list(secret('a', '1'));
    expect([shown('a'), shown('b'), asked()]).toEqual([{ version: '1' }, 'absent', []]);
  });

  it('shows what is needed before it exists with its content only', () => {
    list();
    needs('a');
    expect(asked()).toEqual([]);
    change(secret('a', '1'));
    expect([shown('a'), asked()]).toEqual(['absent', ['shop/a']]);
    answer('a', found(secret('a', '1')));
    expect(shown('a')).toEqual({ version: '1' });
  });

  it('asks for a few objects at a time', () => {
    const names = Array.from({ length: 40 }, (_, index) => `s${index}`);
    list(...names.map((name) => secret(name, '1')));
    needs(...names);
    const [first = '', ...others] = asked();
    expect(others).toHaveLength(15);
    answer(first.replace('shop/', ''), { type: 'Gone' });
    expect(asked()).toHaveLength(1);
  });

  it('leaves other resources alone', () => {
    const changes = new Map([['shop/a', { type: 'Deleted', key: 'shop/a' } as const]]);
    expect(content.changed({ resource: 'services', changes }).changes).toBe(changes);
  });
});
