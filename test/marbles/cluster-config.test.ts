import { asyncScheduler, EMPTY, map, NEVER, type Observable, of, takeUntil, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { sha256 } from '../../src/digest.ts';
import type { ConfigEvent, ResourceSource } from '../../src/ports.ts';
import type { TemplateConfig } from '../../src/render/config/template-config.ts';
import type { KubeObject } from '../../src/snapshot/objects.ts';
import type { Problem } from '../../src/snapshot/problem.ts';
import type { WatchEvent } from '../../src/snapshot/watch.ts';
import { clusterConfig } from '../../src/streams/cluster-config.ts';
import type { Findings } from '../../src/vetting/messages.ts';
import { inVirtualTime } from '../support/marbles.ts';
import { HEAD } from '../support/templates.ts';
import { kubeObject } from '../support/watched.ts';

/** A generation whose template says how its vetting ends: `ok`, `bad`, or `later` (for a reason that can pass). */
const config = (generation: number, words: string, key = 'haptic/main'): KubeObject =>
  kubeObject(key, {
    apiVersion: 'haproxy-haptic.org/v1alpha1',
    kind: 'HAProxyTemplateConfig',
    metadata: { uid: 'u', generation },
    spec: {
      haproxyConfig: { template: `${HEAD}# ${words}\n` },
      ...(words === 'typo' && { typo: 1 }),
    },
  });

const EVENTS: Readonly<Record<string, WatchEvent>> = {
  n: { type: 'Replaced', objects: [] },
  a: { type: 'Replaced', objects: [config(1, 'ok'), config(9, 'bad', 'haptic/other')] },
  b: { type: 'Upserted', object: config(2, 'bad') },
  t: { type: 'Upserted', object: config(3, 'typo') },
  l: { type: 'Upserted', object: config(4, 'later') },
  c: { type: 'Upserted', object: config(5, 'ok') },
  B: { type: 'Replaced', objects: [config(2, 'bad')] },
  L: { type: 'Replaced', objects: [config(4, 'later')] },
  T: { type: 'Replaced', objects: [config(3, 'typo')] },
  d: { type: 'Deleted', key: 'haptic/main' },
};

/** Vetting takes this long, in virtual milliseconds. */
const VET_MS = 20;

/** A configuration that is refused is tried again for ever. */
const END_MS = 600_000;

const problem: Problem = { severity: 'error', reason: 'Vetted', message: 'no', nextStep: '' };

interface Options {
  readonly stored$?: Observable<KubeObject | undefined>;
  /** Overrides what the words of the template say. */
  readonly findings?: (config: TemplateConfig, attempt: number) => Findings;
}

const said = ({ main }: TemplateConfig): Findings => {
  if (main.text.includes('# ok')) return { problems: [], mayPass: true };
  return { problems: [problem], mayPass: main.text.includes('# later') };
};

interface Played {
  readonly told: readonly (readonly [number, string])[];
  readonly events: readonly ConfigEvent[];
  readonly vetted: number;
}

const show = (event: ConfigEvent): string =>
  event.ok
    ? `ok ${String(event.observedGeneration ?? 'stored')}`
    : `${String(event.observedGeneration ?? '-')} ${event.problems.map(({ reason }) => reason).join(' ')}`;

const play = (
  diagram: string,
  { stored$ = of(undefined), findings = said }: Options = {},
): Played =>
  inVirtualTime(({ cold, flush }) => {
    let vetted = 0;
    const told: [number, string][] = [];
    const events: ConfigEvent[] = [];
    const source: ResourceSource = {
      problems$: EMPTY,
      watch: ({ namespaces, fieldSelector }) => {
        expect({ namespaces, fieldSelector }).toStrictEqual({
          namespaces: ['haptic'],
          fieldSelector: { 'metadata.name': 'main' },
        });
        return cold(diagram, EVENTS);
      },
    };
    clusterConfig(source, {
      libraries: [],
      digest: sha256,
      config: { namespace: 'haptic', name: 'main' },
      settings: {
        haproxyVersion: '3.4.0',
        routing: { ingressClass: { name: 'haptic', controller: 'x/y' }, standalone: true },
      },
      stored$,
      vet: (candidate) =>
        timer(VET_MS).pipe(
          map(() => {
            vetted += 1;
            return findings(candidate, vetted);
          }),
        ),
    })
      .pipe(takeUntil(timer(END_MS)))
      .subscribe((event) => {
        events.push(event);
        told.push([asyncScheduler.now(), show(event)]);
      });
    flush();
    return { told, events, vetted };
  });

describe('clusterConfig', () => {
  it('emits a generation when it is vetted, with object, generation and spec (G13)', () => {
    const { told, events } = play('a 500ms |');
    expect(told).toStrictEqual([[20, 'ok 1']]);
    expect(events[0]).toMatchObject({
      object: { kind: 'HAProxyTemplateConfig', namespace: 'haptic', name: 'main', uid: 'u' },
      spec: { haproxyConfig: { template: `${HEAD}# ok\n` } },
    });
  });

  it('tells a refused generation and goes on with the one before (G13)', () => {
    const { told, events } = play('a 499ms b 499ms t 499ms c 500ms |');
    expect(told).toStrictEqual([
      [20, 'ok 1'],
      [620, '2 Vetted'],
      [1_100, '3 InvalidConfig'],
      [1_620, 'ok 5'],
    ]);
    expect(events[1]).toMatchObject({ problems: [{ object: { name: 'main' } }] });
  });

  it('cancels the vetting of a generation that a newer one overtakes', () => {
    // The second generation comes 5 ms before the first would be done: its window ends 100 ms later.
    expect(play('n 14ms b 94ms c 500ms |').told).toStrictEqual([
      [0, '- ConfigMissing'],
      [230, 'ok 5'],
    ]);
  });

  it('vets a refused generation again, after 30 s and longer, while the reason can pass', () => {
    const { told, vetted } = play('a 499ms l 400s |', {
      findings: (candidate, attempt) =>
        attempt > 4 ? { problems: [], mayPass: true } : said(candidate),
    });
    expect(told).toStrictEqual([
      [20, 'ok 1'],
      [620, '4 Vetted ConfigTriedAgain'],
      [620 + 30_020 + 60_020 + 120_020, 'ok 4'],
    ]);
    expect(vetted).toBe(5);
  });

  it('does not vet a generation again that is refused for good', () => {
    expect(play('a 499ms b 900s |').vetted).toBe(2);
  });

  it('tries again after 2 s while nothing serves', () => {
    const { told } = play('L 60s |', {
      findings: (candidate, attempt) =>
        attempt > 1 ? { problems: [], mayPass: true } : said(candidate),
    });
    expect(told).toStrictEqual([
      [20, '4 Vetted ConfigTriedAgain'],
      [2_040, 'ok 4'],
    ]);
  });

  it('serves the configuration accepted last when the newest is refused at start, and tells both', () => {
    const { told, events } = play('T 500ms c 500ms |', { stored$: of(config(1, 'ok')) });
    expect(told).toStrictEqual([
      [0, '3 InvalidConfig'],
      [20, 'ok stored'],
      [20, '3 InvalidConfig AcceptedConfigServes'],
      [621, 'ok 5'],
    ]);
    expect(events[1]).not.toHaveProperty('object');
  });

  it('vets the stored configuration like any other, and again while nothing serves', () => {
    const { told } = play('T 10s |', {
      stored$: of(config(1, 'later')),
      findings: (candidate, attempt) =>
        attempt > 1 ? { problems: [], mayPass: true } : said(candidate),
    });
    expect(told.map(([, text]) => text)).toStrictEqual([
      '3 InvalidConfig',
      '3 InvalidConfig AcceptedConfigRefused',
      'ok stored',
      '3 InvalidConfig AcceptedConfigServes',
    ]);
  });

  it('does not ask for the stored configuration while one serves', () => {
    expect(play('a 499ms b 500ms |', { stored$: NEVER }).told).toHaveLength(2);
  });

  it('says which object is missing, and that a deleted one stays in force', () => {
    const { events, told } = play('n 500ms a 500ms d 500ms |');
    expect(told.map(([, text]) => text)).toStrictEqual([
      '- ConfigMissing',
      'ok 1',
      '- ConfigMissing',
    ]);
    const messages = events.map((event) => (event.ok ? '' : (event.problems[0]?.message ?? '')));
    expect(messages[0]).toBe(
      'There is no HAProxyTemplateConfig haptic/main, so nothing is configured.',
    );
    expect(messages[2]).toBe(
      'HAProxyTemplateConfig haptic/main was deleted; what it said last stays in force.',
    );
  });

  it('takes an unforeseen error of the vetting for a refusal', () => {
    const { told } = play('a 500ms |', {
      findings: () => {
        throw new RangeError('secret');
      },
    });
    expect(told[0]).toStrictEqual([20, '1 InternalError ConfigTriedAgain']);
  });
});
