import { defer, map, type Observable, throwError, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { AgentError, type Pod } from '../../src/ports.ts';
import type { AgentState } from '../../src/protocol/answers.ts';
import { isAtLeast } from '../../src/render/version.ts';
import { fleetVersion } from '../../src/streams/fleet-version.ts';
import { marbles } from '../support/marbles.ts';
import { podSet } from '../support/world.ts';

const fleet = (names: string, leaving = '') => ({
  pods: podSet(...names.split(' ').filter((name) => name !== '')),
  leaving: new Set(leaving.split(' ')),
});
type Fleets = Observable<ReturnType<typeof fleet>>;

/** The version of a fleet whose agents answer after 2 ms; `asked` takes the names. */
const version = (
  fleet$: Fleets,
  answers: Readonly<Record<string, string>>,
  asked: string[] = [],
): Observable<string> =>
  fleetVersion({
    client: {
      state: ({ name }: Pod) =>
        defer(() => {
          asked.push(name);
          const haproxy = answers[name];
          return haproxy === undefined
            ? throwError(() => new AgentError('unreachable', name))
            : timer(2).pipe(map(() => ({ haproxy: { version: haproxy } }) as AgentState));
        }),
    },
    fleet$,
    localVersion: '3.4.7',
    random: () => 0,
  });

describe('the version of the fleet (D13)', () => {
  it(
    'is the local one at first, then the lowest that pods have, told when another minor is',
    marbles(({ cold, expectObservable }) => {
      const fleets$ = cold('-a---b---c---d', {
        a: fleet('old'),
        b: fleet('old new'),
        c: fleet('new'),
        d: fleet(''),
      });
      const answers = { old: '3.0.11', new: '3.2.20' };
      expectObservable(version(fleets$, answers), '30ms !').toBe('l--o-----n---l', {
        l: '3.4.7',
        o: '3.0.11',
        n: '3.2.20',
      });
    }),
  );

  it(
    'does not count pods that are leaving',
    marbles(({ cold, expectObservable }) => {
      const fleets$ = cold('-a---b', { a: fleet('old new'), b: fleet('old new', 'old') });
      const answers = { old: '3.0.11', new: '3.2.20' };
      expectObservable(version(fleets$, answers), '30ms !').toBe('l--o-n', {
        l: '3.4.7',
        o: '3.0.11',
        n: '3.2.20',
      });
    }),
  );

  it(
    'asks each pod once, and one that does not answer again and again, later and later',
    marbles(({ cold, expectObservable, flush }) => {
      const asked: string[] = [];
      const fleets$ = cold('-a---b', { a: fleet('one dead'), b: fleet('one dead', 'x') });
      const answers = { one: '3.4.1', mute: '' };
      expectObservable(version(fleets$, answers, asked), '8s !').toBe('l', { l: '3.4.7' });
      flush();
      expect(asked).toStrictEqual(['one', 'dead', 'dead', 'dead', 'dead']);
    }),
  );

  it(
    'waits for a HAProxy that does not answer its agent yet',
    marbles(({ cold, expectObservable, flush }) => {
      const asked: string[] = [];
      expectObservable(version(cold('a', { a: fleet('mute') }), { mute: '' }, asked), '3s !').toBe(
        'l',
        { l: '3.4.7' },
      );
      flush();
      expect(asked).toStrictEqual(['mute', 'mute']);
    }),
  );
});

describe('isAtLeast', () => {
  it.each([
    ['3.4.7', '3.4', true],
    ['3.4', '3.4.7', false],
    ['3.10.0', '3.9', true],
    ['3.0.11-1+deb13u5', '3.0.5', true],
    ['3.5-dev1', '3.4.9', true],
    ['2.9', '3.0', false],
  ])('%s at least %s: %s', (one, other, expected) => {
    expect(isAtLeast(one, other)).toBe(expected);
  });
});
