import type { KubeError } from '../kube/client.ts';

/**
 * Where a list-watch stands between two steps. A wait for the next attempt keeps it:
 *
 * ```
 * Listing ──all pages──▶ Syncing ──one Replaced──▶ Watching ──clean close──▶ Watching
 *    ▲                                                │
 *    ├─────────── Backoff ◀──────── error ────────────┤   the version is of no more use: Listing
 *    └─────────── Backoff ◀──────── error ────────────┘   else: Watching from the same version
 * ```
 */
export type ListWatchState =
  | {
      readonly phase: 'Listing';
      /** Objects in one page. */
      readonly limit: number;
    }
  | {
      readonly phase: 'Watching';
      readonly version: string;
      /** Attempts in a row to go on from this version that the server ended with an error of its own. */
      readonly doubts: number;
    };

/** As client-go asks for. */
const PAGE_OBJECTS = 500;
const SMALLEST_PAGE_OBJECTS = 10;
/** An event that the server cannot read would fail every attempt to go on from the version before it. */
const MAX_DOUBTS = 3;

export const LISTING: ListWatchState = { phase: 'Listing', limit: PAGE_OBJECTS };

/** A whole list was read, or a line came in: this is where to go on. */
export const watchingFrom = (version: string): ListWatchState => ({
  phase: 'Watching',
  version,
  doubts: 0,
});

/**
 * Where to go on after an error. A page that was too large or too slow is asked for with half as many objects; a version
 * that the server refuses leads to a new list.
 */
export const afterError = (state: ListWatchState, { code }: KubeError): ListWatchState => {
  if (state.phase === 'Listing') {
    const smaller = code === 'timeout' || code === 'protocol';
    return smaller
      ? { ...state, limit: Math.max(SMALLEST_PAGE_OBJECTS, Math.floor(state.limit / 2)) }
      : state;
  }
  if (code === 'gone' || code === 'invalid' || code === 'not-found') return LISTING;
  if (code !== 'server' && code !== 'protocol') return state;
  return state.doubts + 1 >= MAX_DOUBTS ? LISTING : { ...state, doubts: state.doubts + 1 };
};
