import { concatMap, from, map, merge, of, Subject, take, tap, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type Checked, gateLatest } from '../../../src/operators/gate-latest.ts';
import { inVirtualTime, marbles } from '../../support/marbles.ts';
import { describeOperatorContract } from './operator-contract.ts';

/** A result as text: value, then what the check said. */
const text = map(({ value, result }: Checked<string, string>) => value + result);

/** Letters of an expected diagram: `A` is the result of checking `a`. */
const results = Object.fromEntries(
  Array.from('abcdefghij').map((it) => [it.toUpperCase(), `${it}r`]),
);

const wanted = { o: undefined, a: 'a', b: 'b', c: 'c', d: 'd', e: 'e' };

describe('gateLatest', () => {
  describeOperatorContract({
    operator: () => gateLatest({ check: (value) => timer(1).pipe(map(() => value)) }),
    passesErrors: true,
    emitsSynchronously: false,
    isUnicast: true,
  });

  describeOperatorContract({
    // Without a rest: this case runs on the real clock, which may tick during a check.
    operator: () => gateLatest({ check: (value) => of(value), idleRatio: 0 }),
    passesErrors: true,
    emitsSynchronously: true,
    isUnicast: true,
  });

  it(
    'matches its diagram (G9: one check at a time, newest first, half of the time at most)',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = '  -a-b-c------------d-|';
      const check = '    ---r|';
      const expected = '----A-------C--------D|';
      const source$ = cold(source);
      const check$ = cold(check);
      const result = source$.pipe(gateLatest({ check: () => check$ }), text);
      expectObservable(result).toBe(expected, results);
      expectSubscriptions(source$.subscriptions).toBe('^-------------------!');
      expectSubscriptions(check$.subscriptions).toBe([
        '-^---!',
        '---------^---!',
        '------------------^---!',
      ]);
    }),
  );

  it(
    'makes progress when values come faster than checks (G9)',
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const source = hot('  abcdefghij----|');
      const check = cold('  --r|');
      const checkSubs = ['  ^--!', '      ------^--!', '------------^--!'];
      const expected = '    --A-----G-----J|';
      const result = source.pipe(gateLatest({ check: () => check }), text);
      expectObservable(result).toBe(expected, results);
      expectSubscriptions(check.subscriptions).toBe(checkSubs);
    }),
  );

  it(
    'never cancels a running check for a newer value, nor for undefined',
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const source = hot('  -a-o----------|', wanted);
      const check = cold('   -----r|');
      const expected = '    ------A-------|';
      const result = source.pipe(gateLatest({ check: () => check }), text);
      expectObservable(result).toBe(expected, results);
      expectSubscriptions(check.subscriptions).toBe('-^-----!');
    }),
  );

  it(
    'forgets a waiting value when none is wanted any more',
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const source = hot('  -a-b-o-----c---|', wanted);
      const check = cold('   --r|');
      const expected = '    ---A---------C-|';
      const result = source.pipe(gateLatest({ check: () => check }), text);
      expectObservable(result).toBe(expected, results);
      expectSubscriptions(check.subscriptions).toBe(['-^--!', '-----------^--!']);
    }),
  );

  it(
    'rests as long as the check took, times the ratio',
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const source = hot('  -ab-----------|');
      const check = cold('   -r|');
      const long = '        --A-------B---|';
      const none = '        --A-B---------|';
      const checked = (idleRatio: number) =>
        source.pipe(gateLatest({ check: () => check, idleRatio }), text);
      expectObservable(checked(3)).toBe(long, results);
      expectObservable(checked(0)).toBe(none, results);
      const longSubs = ['   -^-!', '---------^-!'];
      const noneSubs = ['   -^-!', '---^-!'];
      expectSubscriptions(check.subscriptions).toBe([
        longSubs[0]!,
        noneSubs[0]!,
        noneSubs[1]!,
        longSubs[1]!,
      ]);
    }),
  );

  it(
    'does not rest while it is urgent (G9: while holding, the next starts at once)',
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const source = hot('  -ab------|');
      const check = cold('   ---r|');
      const expected = '    ----A---B|';
      const result = source.pipe(gateLatest({ check: () => check, urgent: () => true }), text);
      expectObservable(result).toBe(expected, results);
      expectSubscriptions(check.subscriptions).toBe(['-^---!', '-----^---!']);
    }),
  );

  it(
    'cuts a rest short for a value that arrives when it has become urgent',
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const source = hot('  -a------b-----|');
      const check = cold('   -----r|');
      const expected = '    ------A------B|';
      let holding = false;
      const result = source.pipe(
        tap((value) => (holding = value === 'b')),
        gateLatest({ check: () => check, urgent: () => holding }),
        text,
      );
      expectObservable(result).toBe(expected, results);
      expectSubscriptions(check.subscriptions).toBe(['-^-----!', '--------^-----!']);
    }),
  );

  it(
    'checks a value again that is wanted again because of its result (re-entrant)',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const fedBack = new Subject<string>();
      const source = merge(cold('a'), fedBack);
      const check = cold('   --(r|)');
      const expected = '    --A---A---A-';
      let tries = 0;
      const result = source.pipe(
        gateLatest({ check: () => check }),
        text,
        tap(() => {
          if (++tries < 3) fedBack.next('a');
        }),
      );
      expectObservable(result, '^----------!').toBe(expected, results);
      expectSubscriptions(check.subscriptions).toBe(['^-!', '----^-!', '--------^-!']);
    }),
  );

  it(
    'checks the last wanted value after completion of the source, without a rest',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -ab-|');
      const check = cold('    ---r|');
      const expected = '     ----A---B|';
      const result = source.pipe(gateLatest({ check: () => check }), text);
      expectObservable(result).toBe(expected, results);
      expectSubscriptions(check.subscriptions).toBe(['-^---!', '-----^---!']);
    }),
  );

  it(
    'ends a rest when the source completes',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -ab----|');
      const check = cold('    ---r|');
      const expected = '     ----A-----B|';
      const result = source.pipe(gateLatest({ check: () => check }), text);
      expectObservable(result).toBe(expected, results);
      expectSubscriptions(check.subscriptions).toBe(['-^---!', '-------^---!']);
    }),
  );

  it(
    'cancels the running check on unsubscription and on an error of the source',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -a--b-#');
      const check = cold('    --------r|');
      const unsub = '        ^--!';
      const result = source.pipe(gateLatest({ check: () => check }), text);
      expectObservable(result, unsub).toBe('---');
      expectObservable(result).toBe('       ------#');
      expectSubscriptions(source.subscriptions).toBe([unsub, '^-----!']);
      expectSubscriptions(check.subscriptions).toBe(['-^-!', '-^----!']);
    }),
  );

  it(
    'passes the error of a check and one thrown by check or urgent',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -ab---|');
      const failing = cold(' --#');
      const expected = '     ---#';
      expectObservable(source.pipe(gateLatest({ check: () => failing }))).toBe(expected);
      const fail = (): never => {
        throw new Error('thrown');
      };
      const thrown = new Error('thrown');
      expectObservable(source.pipe(gateLatest({ check: fail }))).toBe('-#', {}, thrown);
      const check = cold('   -(r|)');
      const urgent = source.pipe(gateLatest({ check: () => check, urgent: fail }), text);
      expectObservable(urgent).toBe('--(A#)', results, thrown);
      expectSubscriptions(source.subscriptions).toBe(['^--!', '^!', '^-!']);
    }),
  );

  it('bounds the rest when the clock jumps', () => {
    inVirtualTime(({ hot, expectObservable }) => {
      let jump = 0;
      const now = () => (jump += 3_600_000);
      const check = () => timer(1).pipe(map(() => 'r'));
      const source = hot('     ab 99ms |');
      const result = source.pipe(gateLatest({ check, now, maxIdleMs: 20 }), text);
      expectObservable(result).toBe('-A 20ms B 78ms |', results);
    });
  });

  it('stops a synchronous endless check by take', () => {
    let produced = 0;
    const endless = function* (): Generator<number> {
      for (;;) {
        if (++produced > 100) throw new Error('not stopped');
        yield produced;
      }
    };
    of('a')
      .pipe(gateLatest({ check: () => from(endless()) }), take(2))
      .subscribe();
    expect(produced).toBe(2);
  });

  it('never has two checks at once, although a check ends late and values are fed back', () => {
    inVirtualTime(({ hot, flush }) => {
      let active = 0;
      let most = 0;
      const check = (value: string) =>
        of(value).pipe(
          tap({ subscribe: () => (most = Math.max(most, ++active)), finalize: () => active-- }),
          concatMap((result) => timer(3).pipe(map(() => result))),
        );
      const source = hot('abcdefghijabcdefghij|');
      source.pipe(gateLatest({ check, idleRatio: 0 })).subscribe();
      flush();
      expect([most, active]).toStrictEqual([1, 0]);
    });
  });

  it(
    'rests for one time the check by default (in real units)',
    marbles(({ hot, expectObservable }) => {
      const source = hot('  ab 4s |');
      const expected = '    800ms A 1599ms B 1601ms |';
      const check = () => timer(800).pipe(map(() => 'r'));
      const result = source.pipe(gateLatest({ check }), text);
      expectObservable(result).toBe(expected, results);
    }),
  );
});
