import { describe, expect, it } from 'vitest';
import { applyBatch, emptySnapshot } from '../../../src/snapshot/apply-batch.ts';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import { kubeObject, watched } from '../../support/watched.ts';

const INDEXED = watched('slices', {
  indexBy: ['metadata.namespace', 'metadata.labels.kubernetes\\.io/service-name', 'spec.port'],
});

const slice = (key: string, service: string | undefined, port?: unknown): KubeObject =>
  kubeObject(key, {
    metadata: { labels: service === undefined ? {} : { 'kubernetes.io/service-name': service } },
    spec: { port },
  });

const storeOf = (...objects: readonly KubeObject[]) =>
  applyBatch(
    emptySnapshot([INDEXED]),
    new Map([['slices', new Map([['*', { type: 'Replaced', objects }]])]]),
  ).store('slices');

const names = (objects: readonly KubeObject[]) => objects.map(({ metadata }) => metadata.name);

describe('IndexedStore', () => {
  const store = storeOf(
    slice('a/3', 'web', 80),
    slice('a/1', 'web', 80),
    slice('a/2', 'web', 81),
    slice('a/4', 'api'),
    slice('b/5', 'web', true),
    slice('b/6', undefined, 80),
  );

  it('fetches by all keys, by some and by none, sorted', () => {
    expect(names(store.fetch('a', 'web', '80'))).toStrictEqual(['1', '3']);
    expect(names(store.fetch('a', 'web'))).toStrictEqual(['1', '2', '3']);
    expect(names(store.fetch('a'))).toStrictEqual(['1', '2', '3', '4']);
    expect(names(store.fetch())).toStrictEqual(['1', '2', '3', '4', '5', '6']);
    expect(names(store.fetch('b', 'web', 'true'))).toStrictEqual(['5']);
  });

  it('finds an object that lacks a field by the keys before it only', () => {
    expect(names(store.fetch('b'))).toStrictEqual(['5', '6']);
    expect(store.fetch('b', '')).toStrictEqual([]);
    expect(store.fetch('a', 'api', 'undefined')).toStrictEqual([]);
  });

  it('finds nothing for unknown keys, and refuses more keys than fields', () => {
    expect(store.fetch('c')).toStrictEqual([]);
    expect(store.fetch('constructor')).toStrictEqual([]);
    expect(() => store.fetch('a', 'web', '80', 'x')).toThrow('indexed by 3 fields, not 4');
  });

  it('does not mix up keys that look alike when joined', () => {
    const alike = storeOf(
      slice('a/1', 'b1:c', 'd'),
      slice('a/2', 'b', '1:cd'),
      slice('a/3', 'b\u0000', 'd'),
    );
    expect(names(alike.fetch('a', 'b'))).toStrictEqual(['2']);
    expect(names(alike.fetch('a', 'b\u0000', 'd'))).toStrictEqual(['3']);
  });

  it('keys cluster-scoped objects by an empty namespace', () => {
    const scoped = storeOf(slice('/node', 'web'));
    expect(names(scoped.fetch(''))).toStrictEqual(['node']);
    expect(scoped.get('', 'node')).toBeDefined();
  });

  it('computes its list once', () => {
    expect(store.list()).toBe(store.list());
    expect(store.fetch('a', 'web')).toBe(store.fetch('a', 'web'));
  });

  it('changes one of 50,000 objects without work that grows with their number', () => {
    const many = (count: number) =>
      applyBatch(
        emptySnapshot([INDEXED]),
        new Map([
          [
            'slices',
            new Map([
              [
                '*',
                {
                  type: 'Replaced',
                  objects: Array.from({ length: count }, (_, at) => slice(`a/${at}`, `s${at}`, 1)),
                },
              ],
            ]),
          ],
        ]),
      );
    const medianMs = (snapshot: ReturnType<typeof many>) => {
      const times = Array.from({ length: 101 }, (_, round) => {
        const object = slice('a/7', 's7', round + 2);
        const begin = performance.now();
        applyBatch(
          snapshot,
          new Map([['slices', new Map([['a/7', { type: 'Upserted', object }]])]]),
        );
        return performance.now() - begin;
      });
      return times.sort((left, right) => left - right)[50] ?? Infinity;
    };
    // Far from what copying or sorting 50,000 objects would take, and far above the noise of a busy machine.
    expect(medianMs(many(50_000))).toBeLessThan(2);
  });
});
