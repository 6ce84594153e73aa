import { TestScheduler, type RunHelpers } from 'rxjs/testing';
import { expect } from 'vitest';

export type { RunHelpers };

/**
 * Wraps a marble test for `it`: runs it in virtual time and compares with vitest's strict deep equality.
 * A test that asserts nothing fails, because a diagram nobody compares passes empty.
 *
 * @example it('doubles', marbles(({ cold, expectObservable }) => { … }))
 */
export function marbles(test: (helpers: RunHelpers) => void): () => void {
  return () => {
    expect.hasAssertions();
    inVirtualTime(test);
  };
}

/**
 * Runs `test` in the virtual time of a new RxJS test scheduler and returns what it returned.
 * Timers of RxJS are virtual inside; promises and `setImmediate` are not, so keep them out.
 */
export function inVirtualTime<R>(test: (helpers: RunHelpers) => R): R {
  const scheduler = new TestScheduler((actual, expected) => {
    expect(actual).toStrictEqual(expected);
  });
  return scheduler.run(test);
}
