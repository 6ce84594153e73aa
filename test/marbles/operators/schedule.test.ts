import { asyncScheduler, map, Subject, tap } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type Pace, schedule, type Scheduled } from '../../../src/operators/schedule.ts';
import { inVirtualTime, marbles } from '../../support/marbles.ts';
import { describeOperatorContract } from './operator-contract.ts';

/** A state: what only a reload can bring, and what can be brought at once. */
interface State {
  readonly structure: number;
  readonly servers: number;
}

/** The first digit of a state is its structure, the second its servers. */
const state = (text: string): State => ({ structure: Number(text[0]), servers: Number(text[1]) });

const classify = (last: State | undefined, next: State): Pace => {
  const structure = last?.structure !== next.structure;
  const servers = last !== undefined && last.servers !== next.servers;
  if (structure) return servers ? 'both' : 'later';
  return servers ? 'now' : 'none';
};

const states = {
  a: state('11'),
  b: state('21'),
  c: state('31'),
  d: state('41'),
  m: state('12'),
  n: state('13'),
  p: state('22'),
  q: state('33'),
  r: state('44'),
};

/** What a letter stands for in an expected diagram: a lower-case one goes without a wait. */
const goes = (waits: Record<string, number> = {}): Record<string, Scheduled<State>> => {
  const plain = Object.entries(states).map(([letter, value]) => [
    letter,
    { value, notBeforeMs: 0 },
  ]);
  const waiting = Object.entries(waits).map(([letter, notBeforeMs]) => [
    letter,
    { value: states[letter.toLowerCase() as keyof typeof states], notBeforeMs },
  ]);
  return Object.fromEntries([...plain, ...waiting]) as Record<string, Scheduled<State>>;
};

describe('schedule', () => {
  describeOperatorContract({
    operator: () => schedule({ intervalMs: 3, classify: () => 'later' }),
    passesErrors: true,
    emitsSynchronously: false,
    isUnicast: true,
  });

  describeOperatorContract({
    operator: () => schedule({ intervalMs: 3, classify: () => 'now' }),
    passesErrors: true,
    emitsSynchronously: true,
    isUnicast: true,
  });

  it(
    'matches its diagram (G6, G7)',
    marbles(({ cold, expectObservable, expectSubscriptions, time }) => {
      const source = '  -a-b-----n-m---|';
      const interval = ' ------|        ';
      const expected = '-a-----b-n-M---|';
      const values = { a: state('11'), b: state('21'), n: state('22'), m: state('33') };
      const source$ = cold(source, values);
      const result = source$.pipe(schedule({ intervalMs: time(interval), classify }));
      expectObservable(result).toBe(expected, {
        a: { value: values.a, notBeforeMs: 0 },
        b: { value: values.b, notBeforeMs: 0 },
        n: { value: values.n, notBeforeMs: 0 },
        M: { value: values.m, notBeforeMs: 2 },
      });
      expectSubscriptions(source$.subscriptions).toBe('^--------------!');
    }),
  );

  it(
    'sends what needs a reload at once after a quiet interval (G6)',
    marbles(({ cold, expectObservable }) => {
      const source = cold('  -a-----b--------c--|', states);
      const expected = '     -a-----b--------c--|';
      expectObservable(source.pipe(schedule({ intervalMs: 6, classify }))).toBe(expected, goes());
    }),
  );

  it(
    'sends what comes exactly at the end of the interval at once (G6)',
    marbles(({ cold, expectObservable }) => {
      const source = cold('  -a-----(bp)----|', states);
      const expected = '     -a-----(bp)----|';
      expectObservable(source.pipe(schedule({ intervalMs: 6, classify }))).toBe(expected, goes());
    }),
  );

  it(
    'keeps the newest of what needs a reload until the end of the interval (G6)',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -(ab)-c-d-----------|', states);
      const subs = '         ^-------------------!';
      const expected = '     -a---------d--------|';
      expectObservable(source.pipe(schedule({ intervalMs: 10, classify }))).toBe(expected, goes());
      expectSubscriptions(source.subscriptions).toBe(subs);
    }),
  );

  it(
    'sends what needs no reload at once, also right after a reload (G7)',
    marbles(({ cold, expectObservable }) => {
      const source = cold('  -(amn)-m------|', states);
      const expected = '     -(amn)-m------|';
      expectObservable(source.pipe(schedule({ intervalMs: 9, classify }))).toBe(expected, goes());
    }),
  );

  it(
    'drops what waits when the newer state takes it back (none, now)',
    marbles(({ cold, expectObservable }) => {
      const none = cold('    -a-b-a--------|', states);
      const noneGoes = '     -a------------|';
      expectObservable(none.pipe(schedule({ intervalMs: 6, classify }))).toBe(noneGoes, goes());
      const now = cold('     -a-b-m--------|', states);
      const nowGoes = '      -a---m--------|';
      expectObservable(now.pipe(schedule({ intervalMs: 6, classify }))).toBe(nowGoes, goes());
    }),
  );

  it(
    'sends a mixture at once with the rest of the interval, and empties the slot (G6, G7)',
    marbles(({ cold, expectObservable }) => {
      const source = cold('  -a-b-q------------|', states);
      const expected = '     -a---Q------------|';
      const result = source.pipe(schedule({ intervalMs: 10, classify }));
      expectObservable(result).toBe(expected, goes({ Q: 6 }));
    }),
  );

  it(
    'counts the interval after a mixture from the time of its reload',
    marbles(({ cold, expectObservable }) => {
      // a reloads at 1, q at 5; then 9 is the earliest time for b.
      const source = cold('  -a-q--b-------|', states);
      const expected = '     -a-Q-----b----|';
      const pace = (last: State | undefined, next: State): Pace =>
        next === states.q ? 'both' : last === next ? 'none' : 'later';
      const result = source.pipe(schedule({ intervalMs: 4, classify: pace }));
      expectObservable(result).toBe(expected, goes({ Q: 2 }));
    }),
  );

  it(
    'lets all that comes before a reload ahead join it, whatever it needs (G6: one reload per interval)',
    marbles(({ cold, expectObservable }) => {
      // a reloads at 1, so the reload of p is due at 11; q, c and r make it too. The next is free at 21.
      const source = cold('  -a-p-q-c-r----------c|', states);
      const expected = '     -a-P-Q-C-R-----------(D|)';
      const pace = (last: State | undefined, next: State): Pace =>
        next === states.c ? 'later' : classify(last, next);
      const result = source.pipe(schedule({ intervalMs: 10, classify: pace }));
      expectObservable(result).toBe(expected, {
        ...goes({ P: 8, Q: 6, C: 4, R: 2 }),
        D: { value: states.c, notBeforeMs: 0 },
      });
    }),
  );

  it(
    'tells what goes without a reload of its own how far the reload ahead is',
    marbles(({ cold, expectObservable }) => {
      const source = cold('  -a-p-b----|', states);
      const expected = '     -a-P-B----|';
      const result = source.pipe(schedule({ intervalMs: 10, classify }));
      expectObservable(result).toBe(expected, goes({ P: 8, B: 6 }));
    }),
  );

  it(
    'sends what waits at once when the source completes, with the rest of the interval',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a-b-|', states);
      const expected = '     -a---(B|)';
      const result = source.pipe(schedule({ intervalMs: 10, classify }));
      expectObservable(result).toBe(expected, goes({ B: 6 }));
      expectSubscriptions(source.subscriptions).toBe('^----!');
    }),
  );

  it(
    'drops what waits when the source errors or is unsubscribed',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a-b-#', states);
      const unsub = '        ^---!';
      const result = source.pipe(schedule({ intervalMs: 10, classify }));
      expectObservable(result).toBe('       -a---#', goes());
      expectObservable(result, unsub).toBe('-a---', goes());
      expectSubscriptions(source.subscriptions).toBe(['^----!', unsub]);
    }),
  );

  it(
    'passes an error thrown by classify',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -ab-', states);
      const fail = (last: State | undefined): Pace => {
        if (last !== undefined) throw new Error('classify');
        return 'later';
      };
      const result = source.pipe(schedule({ intervalMs: 10, classify: fail }));
      expectObservable(result).toBe('-a#', goes(), new Error('classify'));
      expectSubscriptions(source.subscriptions).toBe('^-!');
    }),
  );

  it('classifies against the value emitted last, not against one that waits', () => {
    inVirtualTime(({ cold, expectObservable, flush }) => {
      const asked: string[] = [];
      const spy = (last: string | undefined, next: string): Pace => {
        asked.push(`${last ?? '-'}${next}`);
        return 'later';
      };
      const source = cold('-abc-----d---|');
      const result = source.pipe(
        schedule({ intervalMs: 5, classify: spy }),
        map(({ value }) => value),
      );
      expectObservable(result).toBe('-a----c----d-|');
      flush();
      expect(asked).toStrictEqual(['-a', 'ab', 'ac', 'cd']);
    });
  });

  it(
    'knows what it has emitted when the consumer feeds back (re-entrant)',
    marbles(({ expectObservable }) => {
      const source = new Subject<State>();
      const fed = source.pipe(
        schedule({ intervalMs: 5, classify }),
        tap(({ value }) => {
          if (value === states.a) source.next(states.b);
          if (value === states.b) source.next(states.p);
        }),
      );
      expectObservable(fed, '^--------!').toBe('x----(pb)', {
        ...goes(),
        x: { value: states.a, notBeforeMs: 0 },
      });
      asyncScheduler.schedule(() => source.next(states.a), 0);
    }),
  );

  it(
    'stays within one interval when the clock is set back',
    marbles(({ cold, expectObservable }) => {
      let setBack = 3_600_000;
      const now = () => asyncScheduler.now() + setBack;
      const source = cold('  -a-q---|', states).pipe(tap((it) => it === states.q && (setBack = 0)));
      const expected = '     -a-Q---|';
      const result = source.pipe(schedule({ intervalMs: 10, classify, now }));
      expectObservable(result).toBe(expected, goes({ Q: 10 }));
    }),
  );

  it(
    'spaces reloads by 5 s when told so (in real units)',
    marbles(({ cold, expectObservable }) => {
      const source = cold('  a 999ms b 999ms c 9s d 1s |', states);
      const expected = '     a 4999ms        c 6000ms d 1s |';
      expectObservable(source.pipe(schedule({ intervalMs: 5000, classify }))).toBe(
        expected,
        goes(),
      );
    }),
  );
});
