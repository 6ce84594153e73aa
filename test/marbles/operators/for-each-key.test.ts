import {
  concat,
  defer,
  from,
  map,
  NEVER,
  type Observable,
  of,
  Subject,
  switchMap,
  take,
  tap,
  timer,
  toArray,
} from 'rxjs';
import { describe, expect, it } from 'vitest';
import { forEachKey } from '../../../src/operators/for-each-key.ts';
import { marbles } from '../../support/marbles.ts';
import { describeOperatorContract } from './operator-contract.ts';

type Members = ReadonlyMap<string, string>;

/** `members('a1 b2')` holds member `a` with value `1` and member `b` with value `2`. */
const members = (text: string): Members =>
  new Map(
    text
      .split(' ')
      .filter(Boolean)
      .map((member) => [member.charAt(0), member.slice(1)]),
  );

const sets: Record<string, Members> = {
  o: members(''),
  a: members('a1'),
  A: members('a2'),
  b: members('a1 b1'),
  B: members('a1 b2'),
  c: members('b1'),
};

/** Emits what its member is and has: `a1`. */
const labelled = (key: string, value$: Observable<string>): Observable<string> =>
  value$.pipe(map((value) => key + value));

describe('forEachKey', () => {
  describeOperatorContract({
    operator: () => (source) =>
      source.pipe(
        map((value) => new Map([[value, value]])),
        forEachKey(labelled),
      ),
    passesErrors: true,
    emitsSynchronously: true,
    isUnicast: true,
  });

  it(
    'matches its diagram (G8: members do not wait for each other)',
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const source = '  -a--b---c|';
      const one = '      --x--x--x|';
      const two = '         ---y--y-|';
      const expected = '---x--xy--y-|';
      const sets = { a: members('1'), b: members('1 2'), c: members('2') };
      const source$ = hot(source, sets);
      const work: Record<string, ReturnType<typeof cold<string>>> = { 1: cold(one), 2: cold(two) };
      expectObservable(source$.pipe(forEachKey((key) => work[key]!))).toBe(expected);
      expectSubscriptions(source$.subscriptions).toBe('^--------!');
      expectSubscriptions(work['1']!.subscriptions).toBe('-^------!');
      expectSubscriptions(work['2']!.subscriptions).toBe('----^-------!');
    }),
  );

  it(
    'gives a member its newest value and each other value, and nothing for an equal one',
    marbles(({ hot, expectObservable }) => {
      const source = hot('  -a-a-A-b----B-|', sets);
      const expected = '     -x---y-(xz)-w-|';
      const result = source.pipe(forEachKey(labelled));
      expectObservable(result).toBe(expected, { x: 'a1', y: 'a2', z: 'b1', w: 'b2' });
    }),
  );

  it(
    'gives work that looks at its values late only the newest one',
    marbles(({ hot, expectObservable }) => {
      const source = hot('  -a-A-------|', sets);
      const expected = '     ------y----|';
      const project = (key: string, value$: Observable<string>) =>
        timer(5).pipe(switchMap(() => labelled(key, value$)));
      expectObservable(source.pipe(forEachKey(project))).toBe(expected, { y: 'a2' });
    }),
  );

  it(
    'subscribes nothing anew while the set is unchanged, also when it is another map',
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const source = hot('  -b-c-b--|', { b: members('a1'), c: members('a1') });
      const work = cold('    ----x----|');
      const workSubs = '     -^--------!';
      const expected = '     -----x----|';
      expectObservable(source.pipe(forEachKey(() => work))).toBe(expected);
      expectSubscriptions(work.subscriptions).toBe(workSubs);
    }),
  );

  it(
    'aborts the work of a removed member',
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const source = hot('  -a---o-----|', sets);
      const work = cold('    --x--x--x|');
      const workSubs = '     -^---!';
      const expected = '     ---x-------|';
      expectObservable(source.pipe(forEachKey(() => work))).toBe(expected);
      expectSubscriptions(work.subscriptions).toBe(workSubs);
    }),
  );

  it(
    'lets the work of a removed member finish when told so',
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const source = hot('  -a---o-----|', sets);
      const work = cold('    --x--x--x|');
      const workSubs = '     -^--------!';
      const expected = '     ---x--x--x-|';
      expectObservable(source.pipe(forEachKey(() => work, { onRemoved: 'finish' }))).toBe(expected);
      expectSubscriptions(work.subscriptions).toBe(workSubs);
    }),
  );

  it(
    'completes the values of a removed member when it may finish, and of none that stays',
    marbles(({ hot, expectObservable }) => {
      const source = hot('  -b--c---|', sets);
      const expected = '     ----x---(y|)';
      const project = (key: string, value$: Observable<string>) =>
        value$.pipe(
          toArray(),
          map((values) => key + values.join()),
        );
      const result = source.pipe(forEachKey(project, { onRemoved: 'finish' }));
      expectObservable(result).toBe(expected, { x: 'a1', y: 'b1' });
    }),
  );

  it(
    'starts afresh for a member that comes back at once',
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const source = hot('  -a-(oA)---|', sets);
      const work = cold('    ----x|');
      const workSubs = ['    -^-!', '---^----!'];
      const expected = '     -1-2---x--|';
      const project = (_: string, value$: Observable<string>) => {
        let count = 0;
        return concat(
          value$.pipe(
            take(1),
            tap(() => count++),
            map((v) => v + `${count}`),
          ),
          work,
        );
      };
      expectObservable(source.pipe(forEachKey(project))).toBe(expected, {
        1: '11',
        2: '21',
        x: 'x',
      });
      expectSubscriptions(work.subscriptions).toBe(workSubs);
    }),
  );

  it(
    'does not start work again that ended by itself while its member stays',
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const source = hot('  -a---A--o-a---|', sets);
      const work = cold('    -x|');
      const workSubs = ['    -^-!', '----------^-!'];
      const expected = '     --x--------x--|';
      expectObservable(source.pipe(forEachKey(() => work))).toBe(expected);
      expectSubscriptions(work.subscriptions).toBe(workSubs);
    }),
  );

  it(
    'leaves the others alone when one member fails and its error is handled',
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const source = hot('  -b------B---|', sets);
      const work: Record<string, ReturnType<typeof cold<string>>> = {
        a: cold('             ---#'),
        b: cold('             --x--x--x--|'),
      };
      const expected = '     ---xf-x--x--|';
      const onError = (error: unknown, key: string) => of(`${key} ${String(error)}`);
      const result = source.pipe(forEachKey((key) => work[key]!, { onError }));
      expectObservable(result).toBe(expected, { x: 'x', f: 'a error' });
      expectSubscriptions(work['a']!.subscriptions).toBe('-^--!');
      expectSubscriptions(work['b']!.subscriptions).toBe('-^----------!');
    }),
  );

  it(
    'handles an error thrown by project like an error of the work',
    marbles(({ hot, expectObservable }) => {
      const source = hot('  -b---B--|', sets);
      const expected = '     -(xy)z--|';
      const project = (key: string, value$: Observable<string>) => {
        if (key === 'a') throw new Error('project');
        return labelled(key, value$);
      };
      const onError = (error: unknown, key: string) => of(`${key}: ${(error as Error).message}`);
      expectObservable(source.pipe(forEachKey(project, { onError }))).toBe(expected, {
        x: 'a: project',
        y: 'b1',
        z: 'b2',
      });
      expectObservable(source.pipe(forEachKey(project))).toBe('-#', {}, new Error('project'));
    }),
  );

  it(
    'passes the error of a member by default, and one thrown by onError',
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const source = hot('  -a-----|', sets);
      const work = cold('    --#     ');
      const expected = '     ---#    ';
      expectObservable(source.pipe(forEachKey(() => work))).toBe(expected);
      const fail = (): never => {
        throw new Error('onError');
      };
      const failing = source.pipe(forEachKey(() => work, { onError: fail }));
      expectObservable(failing).toBe(expected, {}, new Error('onError'));
      expectSubscriptions(source.subscriptions).toBe(['^--!', '^--!']);
      expectSubscriptions(work.subscriptions).toBe(['-^-!', '-^-!']);
    }),
  );

  it(
    'completes every value$ with the source and waits for the members',
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const source = hot('  -b----|', sets);
      const work = cold('          ---(x|)');
      const workSubs = ['    ------^--!', '------^--!'];
      const expected = '     -(vv)----(xx|)';
      const project = (_: string, value$: Observable<string>) =>
        concat(value$.pipe(map(() => 'v')), work);
      expectObservable(source.pipe(forEachKey(project))).toBe(expected);
      expectSubscriptions(work.subscriptions).toBe(workSubs);
    }),
  );

  it(
    'aborts all work when the source errors or is unsubscribed',
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  -b--#', sets);
      const work = cold('     --------x|');
      const unsub = '         ^-!';
      const result = source.pipe(forEachKey(() => work));
      expectObservable(result).toBe('----#');
      expectObservable(result, unsub).toBe('---');
      expectSubscriptions(source.subscriptions).toBe(['^---!', unsub]);
      expectSubscriptions(work.subscriptions).toBe(['-^--!', '-^--!', '-^!', '-^!']);
    }),
  );

  it('works off sets that a consumer emits re-entrantly in order', () => {
    const source = new Subject<Members>();
    const log: string[] = [];
    const project = (key: string, value$: Observable<string>) =>
      defer(() => {
        log.push(`+${key}`);
        return concat(labelled(key, value$), NEVER);
      });
    source.pipe(forEachKey(project)).subscribe((value) => {
      log.push(value);
      if (value === 'a1') {
        source.next(members('b2'));
        source.next(members('a3 b2'));
      }
    });
    source.next(members('a1 b1'));
    expect(log).toStrictEqual(['+a', 'a1', '+b', 'b1', 'b2', '+a', 'a3']);
  });

  it('completes after the sets that are still to be worked off when the source completes re-entrantly', () => {
    const source = new Subject<Members>();
    const log: string[] = [];
    source.pipe(forEachKey(labelled)).subscribe({
      next: (value) => {
        log.push(value);
        if (value === 'a1') {
          source.next(members('c1'));
          source.complete();
        }
      },
      complete: () => log.push('complete'),
    });
    source.next(members('a1 b1'));
    expect(log).toStrictEqual(['a1', 'b1', 'c1', 'complete']);
  });

  it('ends the removed before it starts the new', () => {
    const source = new Subject<Members>();
    const log: string[] = [];
    const project = (key: string) =>
      defer(() => {
        log.push(`+${key}`);
        return NEVER.pipe(tap({ unsubscribe: () => log.push(`-${key}`) }));
      });
    source.pipe(forEachKey(project)).subscribe();
    source.next(members('a1'));
    source.next(members('b1'));
    expect(log).toStrictEqual(['+a', '-a', '+b']);
  });

  it('takes keys like __proto__ and constructor for what they are', () => {
    const names = ['__proto__', 'constructor', 'toString'];
    const seen: string[] = [];
    of(new Map(names.map((name) => [name, 1])))
      .pipe(forEachKey((key: string) => of(key)))
      .subscribe((key) => seen.push(key));
    expect(seen).toStrictEqual(names);
  });

  it('tells values apart as Object.is does', () => {
    const object = { port: 80 };
    const seen: unknown[] = [];
    from([object, object, { port: 80 }, NaN, NaN, undefined, undefined])
      .pipe(
        map((value) => new Map<string, unknown>([['a', value]])),
        forEachKey((_: string, value$: Observable<unknown>) => value$),
      )
      .subscribe((value) => seen.push(value));
    expect(seen).toStrictEqual([object, { port: 80 }, NaN, undefined]);
  });

  it('leaves nothing subscribed for members that came and went', () => {
    const source = new Subject<Members>();
    const clock = new Subject<string>();
    let active = 0;
    const subscription = source
      .pipe(
        forEachKey(() => defer(() => (active++, clock)).pipe(tap({ unsubscribe: () => active-- }))),
      )
      .subscribe();
    for (let round = 0; round < 1000; round++) {
      source.next(members('a1'));
      source.next(members(''));
    }
    expect(active).toBe(0);
    expect(clock.observed).toBe(false);
    subscription.unsubscribe();
    expect(source.observed).toBe(false);
  });
});
