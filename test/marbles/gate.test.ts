import { EMPTY, filter, map, mergeMap, NEVER, type Observable, of, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { Checked, Verdict } from '../../src/gate/verdict.ts';
import type { Render } from '../../src/render/render.ts';
import {
  gate,
  type GateOptions,
  type GateOutput,
  isLevel,
  isNotification,
} from '../../src/streams/gate.ts';
import { makeRender } from '../support/renders.ts';
import { marbles, type RunHelpers } from '../support/marbles.ts';

const IDS = 'abcdefghijklmnop'.split(/(?!^)/);
const renders = Object.fromEntries(IDS.map((id) => [id, makeRender({ id })]));

const PASSED: Verdict = { result: 'passed' };
const REFUSED: Verdict = { result: 'refused', message: 'no', problems: [] };
const INCONCLUSIVE: Verdict = { result: 'inconclusive', cause: 'no binary' };

/** One diagram per plan id; `p` passes, `r` refuses, `i` cannot say. */
const checksOf = ({ cold }: RunHelpers, diagrams: Record<string, string>) =>
  Object.fromEntries(
    Object.entries(diagrams).map(([planId, diagram]) => {
      const checked = (verdict: Verdict): Checked => ({ planId, verdict, durationMs: 3 });
      const values = { p: checked(PASSED), r: checked(REFUSED), i: checked(INCONCLUSIVE) };
      return [planId, cold(diagram, values)];
    }),
  );

/** A level in words: phase, target/accepted, `-` what is refused, `~` whose servers flow. */
const inWords = (output: GateOutput): string => {
  if (isLevel(output)) {
    const { phase, target, accepted, refused, servers } = output;
    const id = (render?: Render): string => render?.plan.id ?? '_';
    return `${phase} ${id(target)}/${id(accepted)} -${[...refused].sort().join('')} ~${id(servers)}`;
  }
  if (output.type === 'Checked') return `checked ${output.checked.planId}`;
  if (output.type === 'Accepted') return `accepted ${output.render.plan.id}`;
  if (output.type === 'Refused') return `refused ${output.render.plan.id}`;
  if (output.type === 'GateChanged') return `${output.phase} since ${output.accepted ?? '_'}`;
  return `reverting ${[...output.refused].sort().join('')} to ${output.to ?? '_'}`;
};

interface Run extends Partial<GateOptions> {
  readonly source: string;
  /** A checker's diagram by plan id; without one it never ends. */
  readonly checks?: Record<string, string>;
}

const run = (helpers: RunHelpers, { source, checks = {}, ...options }: Run) => {
  const check$ = checksOf(helpers, checks);
  const source$ = helpers.cold(source, renders);
  const check = (render: Render): Observable<Checked> => check$[render.plan.id] ?? NEVER;
  const output$ = source$.pipe(gate({ check, epoch: 3, ...options }));
  return {
    source$,
    check$,
    level$: output$.pipe(filter(isLevel), map(inWords)),
    notification$: output$.pipe(
      filter(isNotification),
      filter(({ type }) => type !== 'Accepted' && type !== 'Refused'),
      map(inWords),
    ),
    verdict$: output$.pipe(
      filter(isNotification),
      filter(({ type }) => type === 'Accepted' || type === 'Refused'),
      map(inWords),
    ),
  };
};

describe('the gate (G9)', () => {
  it(
    'takes a refused render and later ones back, holds, checks the newest at once, and opens when it passes',
    marbles((helpers) => {
      //    source   -a-b--c----------|
      //    check a   ---r|
      //    check b      ---p|
      //    check c            ---p|
      //    expected -a-br-ho-----p---|
      const { level$, check$ } = run(helpers, {
        source: '  -a-b--c----------|',
        checks: { a: '---(r|)', b: '---(p|)', c: '---(p|)' },
      });
      helpers.expectObservable(level$).toBe('-a-br-ho-----p---|', {
        a: 'open a/_ - ~_',
        b: 'open b/_ - ~_',
        r: 'holding _/_ -ab ~b',
        h: 'holding _/_ -ab ~c',
        o: 'open c/b - ~_',
        p: 'open c/c - ~_',
      });
      helpers.expectSubscriptions(check$['a']!.subscriptions).toBe('-^--!');
      helpers.expectSubscriptions(check$['b']!.subscriptions).toBe('----^--!');
      helpers.expectSubscriptions(check$['c']!.subscriptions).toBe('----------^--!');
    }),
  );

  it(
    'goes back to the accepted render of the term, and says so',
    marbles((helpers) => {
      const { notification$ } = run(helpers, {
        source: 'a---b-----|',
        checks: { a: '-(p|)', b: '-(r|)' },
      });
      helpers.expectObservable(notification$).toBe('-(ab)(cde)|', {
        a: 'checked a',
        b: 'open since a',
        c: 'checked b',
        d: 'holding since a',
        e: 'reverting b to a',
      });
    }),
  );

  it(
    'runs one check at a time and lets half of the time pass without one while open',
    marbles((helpers) => {
      const { level$, check$ } = run(helpers, {
        source: '  abc---------d----------|',
        checks: { a: '---p', b: '--p', c: '--p', d: '--p' },
      });
      helpers.expectObservable(level$).toBe('abcp----q---d-r--------|', {
        a: 'open a/_ - ~_',
        b: 'open b/_ - ~_',
        c: 'open c/_ - ~_',
        p: 'open c/a - ~_',
        q: 'open c/c - ~_',
        d: 'open d/c - ~_',
        r: 'open d/d - ~_',
      });
      helpers.expectSubscriptions(check$['a']!.subscriptions).toBe('^--!');
      helpers.expectSubscriptions(check$['b']!.subscriptions).toBe([]);
      helpers.expectSubscriptions(check$['c']!.subscriptions).toBe('------^-!');
      helpers.expectSubscriptions(check$['d']!.subscriptions).toBe('------------^-!');
    }),
  );

  it(
    'makes progress when renders come faster than checks',
    marbles((helpers) => {
      const { notification$ } = run(helpers, {
        source: 'abcdefghijklmnop|',
        checks: Object.fromEntries(IDS.map((id) => [id, '--p'])),
      });
      const accepted$ = notification$.pipe(filter((words) => words.startsWith('open')));
      helpers.expectObservable(accepted$).toBe('--a---e---i---m---(p|)', {
        a: 'open since a',
        e: 'open since e',
        i: 'open since i',
        m: 'open since m',
        p: 'open since p',
      });
    }),
  );

  it(
    'holds after an inconclusive check, reverts nothing, and asks again after 1 s, 2 s, 4 s … 30 s',
    marbles((helpers) => {
      const { level$, check$ } = run(helpers, { source: 'a 200s |', checks: { a: '(i|)' } });
      helpers.expectObservable(level$).toBe('(ah) 199997ms |', {
        a: 'open a/_ - ~_',
        h: 'holding a/_ - ~a',
      });
      helpers.flush();
      expect(check$['a']!.subscriptions.map(({ subscribedFrame }) => subscribedFrame)).toEqual([
        0, 1000, 3000, 7000, 15_000, 31_000, 61_000, 91_000, 121_000, 151_000, 181_000,
      ]);
    }),
  );

  it(
    'retries the newest render in time under constant renders, and a pass releases',
    marbles((helpers) => {
      const { level$ } = run(helpers, {
        source: 'a 299ms b 299ms c 299ms d 299ms e 299ms |',
        checks: { a: '(i|)', d: '(p|)', e: '(p|)' },
      });
      helpers
        .expectObservable(level$)
        .toBe('(ah) 296ms b 299ms c 299ms d 99ms p 199ms (eE) 296ms |', {
          a: 'open a/_ - ~_',
          h: 'holding a/_ - ~a',
          b: 'holding a/_ - ~b',
          c: 'holding a/_ - ~c',
          d: 'holding a/_ - ~d',
          p: 'open d/d - ~_',
          e: 'open e/d - ~_',
          E: 'open e/e - ~_',
        });
    }),
  );

  it(
    'refuses a known refused plan without another check and without letting it out',
    marbles((helpers) => {
      const { level$, check$ } = run(helpers, {
        source: 'a-b---a-|',
        checks: { a: '-(r|)', b: '-(p|)' },
      });
      helpers.expectObservable(level$).toBe('arhp--k-|', {
        a: 'open a/_ - ~_',
        r: 'holding _/_ -a ~a',
        h: 'holding _/_ -a ~b',
        p: 'open b/b - ~_',
        k: 'holding b/b -a ~a',
      });
      helpers.expectSubscriptions(check$['a']!.subscriptions).toBe('^!');
    }),
  );

  it(
    'emits no level when the same render comes again',
    marbles((helpers) => {
      const { level$ } = run(helpers, { source: 'aa|', checks: { a: '---(p|)' } });
      helpers.expectObservable(level$).toBe('a--(p|)', {
        a: 'open a/_ - ~_',
        p: 'open a/a - ~_',
      });
    }),
  );

  it(
    'with firstRenderWaits lets nothing out before the first pass',
    marbles((helpers) => {
      const { level$ } = run(helpers, {
        source: 'ab----|',
        checks: { a: '--p', b: '--p' },
        firstRenderWaits: true,
      });
      helpers.expectObservable(level$).toBe('abp---(q|)', {
        a: 'holding _/_ - ~a',
        b: 'holding _/_ - ~b',
        p: 'open b/a - ~_',
        q: 'open b/b - ~_',
      });
    }),
  );
});

describe('the gate as an operator', () => {
  it(
    'cancels the running check when it is unsubscribed (G10)',
    marbles((helpers) => {
      const { level$, check$, source$ } = run(helpers, {
        source: 'a----',
        checks: { a: '-----p' },
      });
      helpers.expectObservable(level$, '---!').toBe('a', { a: 'open a/_ - ~_' });
      helpers.expectSubscriptions(check$['a']!.subscriptions).toBe('^--!');
      helpers.expectSubscriptions(source$.subscriptions).toBe('^--!');
    }),
  );

  it(
    'stops a waiting retry when it is unsubscribed',
    marbles((helpers) => {
      const { level$, check$ } = run(helpers, { source: 'a', checks: { a: '(i|)' } });
      helpers.expectObservable(level$, '500ms !').toBe('(ah)', {
        a: 'open a/_ - ~_',
        h: 'holding a/_ - ~a',
      });
      helpers.expectSubscriptions(check$['a']!.subscriptions).toBe('(^!)');
    }),
  );

  it(
    'completes after the check that runs (G14)',
    marbles((helpers) => {
      const { level$, check$ } = run(helpers, { source: 'a-|', checks: { a: '-----(p|)' } });
      helpers.expectObservable(level$).toBe('a----(p|)', {
        a: 'open a/_ - ~_',
        p: 'open a/a - ~_',
      });
      helpers.expectSubscriptions(check$['a']!.subscriptions).toBe('^----!');
    }),
  );

  it(
    'completes at once when nothing runs, and gives up a retry',
    marbles((helpers) => {
      const checks = { a: '(i|)' };
      helpers.expectObservable(run(helpers, { source: '--|' }).level$).toBe('--|');
      helpers.expectObservable(run(helpers, { source: 'a----|', checks }).level$).toBe('(ah)-|', {
        a: 'open a/_ - ~_',
        h: 'holding a/_ - ~a',
      });
    }),
  );

  it(
    'never ends when the source never does',
    marbles((helpers) => helpers.expectObservable(run(helpers, { source: '-' }).level$).toBe('-')),
  );

  it(
    'passes an error of the source on at once and cancels the check',
    marbles((helpers) => {
      const { level$, check$ } = run(helpers, { source: 'a-#', checks: { a: '----p' } });
      helpers.expectObservable(level$).toBe('a-#', { a: 'open a/_ - ~_' });
      helpers.expectSubscriptions(check$['a']!.subscriptions).toBe('^-!');
    }),
  );

  it.each([
    ['errors', () => throwError(() => new Error('broken'))],
    ['ends without a verdict', () => EMPTY],
    [
      'throws',
      () => {
        throw new Error('broken');
      },
    ],
  ])('holds when the checker %s', (_name, check) =>
    marbles((helpers) => {
      const { level$ } = run(helpers, { source: 'a----|', check });
      helpers.expectObservable(level$).toBe('(ah)-|', {
        a: 'open a/_ - ~_',
        h: 'holding a/_ - ~a',
      });
    })(),
  );

  it(
    'tells what goes out before the next check starts, also with checks that end at once',
    marbles((helpers) => {
      const check = (render: Render): Observable<Checked> =>
        of({ planId: render.plan.id, verdict: PASSED, durationMs: 0 });
      const { level$ } = run(helpers, { source: '(abc|)', check });
      helpers.expectObservable(level$).toBe('(aAbBcC|)', {
        a: 'open a/_ - ~_',
        A: 'open a/a - ~_',
        b: 'open b/a - ~_',
        B: 'open b/b - ~_',
        c: 'open c/b - ~_',
        C: 'open c/c - ~_',
      });
    }),
  );

  it(
    'keeps a state of its own for each subscriber, and starts anew with each',
    marbles((helpers) => {
      const { level$ } = run(helpers, { source: 'a--|', checks: { a: '-(r|)' } });
      const expected = { a: 'open a/_ - ~_', r: 'holding _/_ -a ~a' };
      helpers.expectObservable(level$).toBe('ar-|', expected);
      helpers.expectObservable(level$, '------^').toBe('------ar-|', expected);
    }),
  );

  it(
    'is unsubscribed with the chain around it',
    marbles((helpers) => {
      const { level$, source$ } = run(helpers, { source: 'a-----', checks: { a: '--p' } });
      const chain$ = of(0).pipe(
        mergeMap(() => level$),
        mergeMap((words) => of(words)),
      );
      helpers.expectObservable(chain$, '-!').toBe('a', { a: 'open a/_ - ~_' });
      helpers.expectSubscriptions(source$.subscriptions).toBe('^!');
    }),
  );
});
