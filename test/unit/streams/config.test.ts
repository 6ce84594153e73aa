import { asyncScheduler, EMPTY, type Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { sha256 } from '../../../src/digest.ts';
import type { ResourceSource } from '../../../src/ports.ts';
import type { ParsedConfig } from '../../../src/render/config/parse-config.ts';
import type { WatchEvent } from '../../../src/snapshot/watch.ts';
import { CONFIG_RESOURCE, directoryConfig, surplusConfigs } from '../../../src/streams/config.ts';
import { inVirtualTime } from '../../support/marbles.ts';
import { kubeObject } from '../../support/watched.ts';

const config = (key: string, spec: unknown, resourceVersion = '1') =>
  kubeObject(key, {
    apiVersion: 'haproxy-haptic.org/v1alpha1',
    kind: 'HAProxyTemplateConfig',
    metadata: { resourceVersion },
    spec,
  });

const VALID = { haproxyConfig: { template: 'x' } };
const OTHER = { haproxyConfig: { template: 'y' } };

const EVENTS: Readonly<Record<string, WatchEvent>> = {
  n: { type: 'Replaced', objects: [] },
  a: { type: 'Replaced', objects: [config('a/a', VALID)] },
  s: { type: 'Upserted', object: config('a/a', VALID, '2') },
  o: { type: 'Upserted', object: config('a/a', OTHER) },
  w: { type: 'Upserted', object: config('a/a', { wrong: 1 }) },
  f: { type: 'Upserted', object: config('a-b/first', OTHER) },
  l: { type: 'Upserted', object: config('z/last', OTHER) },
  d: { type: 'Deleted', key: 'a/a' },
};

const sourceOf = (events$: Observable<WatchEvent>): ResourceSource => ({
  watch: (resource) => (resource === CONFIG_RESOURCE ? events$ : EMPTY),
  problems$: EMPTY,
});

/** What comes out for a diagram of events, with its frame. */
const played = <T>(
  diagram: string,
  read: (source: ResourceSource) => Observable<T>,
  show: (value: T) => string,
): readonly (readonly [number, string])[] =>
  inVirtualTime(({ cold, flush }) => {
    const shown: [number, string][] = [];
    read(sourceOf(cold(diagram, EVENTS))).subscribe((value) =>
      shown.push([asyncScheduler.now(), show(value)]),
    );
    flush();
    return shown;
  });

/** The main template, or `!` for a refusal, at its frame. */
const timed = (diagram: string): readonly (readonly [number, string])[] =>
  played(
    diagram,
    (source) => directoryConfig(source, { libraries: [], digest: sha256 }),
    (result: ParsedConfig) =>
      result.ok ? result.config.main.text : `!${result.problems[0]?.field ?? ''}`,
  );

const configs = (diagram: string): string =>
  timed(diagram)
    .map(([, text]) => text)
    .join(' ');

describe('directoryConfig', () => {
  it('uses the libraries alone when there is no configuration', () => {
    const main = { ...VALID };
    const library = {
      name: 'base',
      description: '',
      order: 1,
      enabled: true,
      requires: [],
      files: new Map(),
      spec: main,
    };
    const texts = played(
      'n',
      (source) => directoryConfig(source, { libraries: [library], digest: sha256 }),
      (result) => String(result.ok && result.config.main.text),
    );
    expect(texts).toStrictEqual([[0, 'x']]);
  });

  it('emits when the content changes, and only then', () => {
    expect(configs('a 200ms s 200ms o 200ms s|')).toBe('x y x');
  });

  it('reports a refusal once, and what follows it', () => {
    expect(configs('a 200ms w 200ms w 200ms s|')).toBe('x !spec.wrong x');
  });

  it('uses the first by namespace and name, also when it comes later or goes', () => {
    expect(configs('a 200ms l 200ms d|')).toBe('x y');
    expect(configs('n 200ms l 200ms a|')).toBe('!spec.haproxyConfig.template y x');
  });

  it('loads what a file holds when it has not changed for 100 ms, the first content at once', () => {
    expect(timed('n 49ms w 9ms f 9ms s 500ms |')).toStrictEqual([
      [0, '!spec.haproxyConfig.template'],
      [170, 'x'],
    ]);
  });

  it('loads a configuration that never comes to rest once a second', () => {
    expect(timed(`a 9ms ${'o 49ms s 49ms '.repeat(11)}|`)[1]).toStrictEqual([1_010, 'y']);
  });

  it('falls back to the libraries when the configuration goes', () => {
    expect(configs('a 200ms d|')).toBe('x !spec.haproxyConfig.template');
  });
});

describe('surplusConfigs', () => {
  it('names every configuration but the first', () => {
    const problems = surplusConfigs([
      config('a/a', VALID),
      config('b/b', VALID),
      config('c/c', VALID),
    ]);
    expect(problems.map(({ object }) => object?.name)).toStrictEqual(['b', 'c']);
    expect(problems[0]?.message).toBe(
      'HAProxyTemplateConfig b/b is ignored, because a/a is in use.',
    );
    expect(surplusConfigs([])).toStrictEqual([]);
  });
});
