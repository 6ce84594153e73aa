import { describe, expect, it } from 'vitest';
import { progressOn } from '../../../src/cli/progress.ts';
import { inVirtualTime } from '../../support/marbles.ts';

const CLEAR = '\r\u001b[2K';

/** What standard error shows while values come as in a diagram, each with its time. */
const shown = (diagram: string, errIsTerminal: boolean): readonly string[] =>
  inVirtualTime(({ cold, flush }) => {
    const written: string[] = [];
    const progress = progressOn({
      out: () => undefined,
      err: (text) => written.push(text),
      isTerminal: false,
      errIsTerminal,
      environment: {},
      signal: new AbortController().signal,
    });
    cold(diagram)
      .pipe(
        progress.during((value) =>
          value === 'x' ? undefined : (seconds) => `${value} ${String(seconds)} s`,
        ),
      )
      .subscribe({
        next: (value) => {
          progress.clear();
          written.push(value);
        },
        error: () => written.push('failed'),
      });
    flush();
    return written;
  });

describe('progress', () => {
  it('shows what lasts, every second, and takes it away before anything else is printed', () => {
    expect(shown('a 2500ms b 500ms c 1500ms x 5s |', true)).toStrictEqual([
      'a',
      `${CLEAR}a 1 s`,
      `${CLEAR}a 2 s`,
      CLEAR,
      'b',
      'c',
      `${CLEAR}c 1 s`,
      CLEAR,
      'x',
    ]);
  });

  it('leaves no line when the work fails', () => {
    expect(shown('a 1500ms #', true)).toStrictEqual(['a', `${CLEAR}a 1 s`, 'failed', CLEAR]);
  });

  it('shows nothing where nobody looks', () => {
    expect(shown('a 2500ms x|', false)).toStrictEqual(['a', 'x']);
  });
});
