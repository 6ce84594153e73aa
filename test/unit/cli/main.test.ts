import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import manifest from '../../../package.json' with { type: 'json' };
import { interrupts } from '../../../src/cli/interrupt.ts';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const QUICKSTART = fileURLToPath(new URL('../../../examples/quickstart', import.meta.url));

const start = (...words: readonly string[]) =>
  spawn(process.execPath, [MAIN, ...words], { stdio: ['ignore', 'pipe', 'pipe'], env: {} });

describe('the program', () => {
  it('tells the version of its package', async () => {
    const child = start('--version');
    expect(await text(child.stdout)).toBe(`haptic ${manifest.version}\n`);
  });

  it.each([
    ['stdout', QUICKSTART, 0],
    ['stderr', '/nowhere', 1],
  ] as const)(
    'ends as it would when nobody reads %s to the end',
    async (stream, directory, expected) => {
      const child = start('render', directory);
      const other = stream === 'stdout' ? child.stderr : child.stdout;
      child[stream].destroy();
      const [rest, ended] = await Promise.all([text(other), once(child, 'close')]);
      expect(ended).toStrictEqual([expected, null]);
      expect(rest).not.toContain('EPIPE');
    },
  );
});

describe('signals that ask the program to end', () => {
  const pressed = (...times: readonly number[]) => {
    const stop = new AbortController();
    const exits: number[] = [];
    let clock = 0;
    const onSignal = interrupts({ stop, exit: (status) => exits.push(status), now: () => clock });
    for (clock of times) onSignal('SIGINT');
    return { reason: stop.signal.reason as unknown, exits };
  };

  it('the first lets work in flight end', () => {
    expect(pressed(5)).toStrictEqual({ reason: 'SIGINT', exits: [] });
  });

  it('G14: one that follows within a second is the same key press, delivered twice', () => {
    expect(pressed(5, 5, 1_004).exits).toStrictEqual([]);
  });

  it('G14: one that follows after a second ends at once with status 130', () => {
    expect(pressed(5, 5, 1_005).exits).toStrictEqual([130]);
  });

  it('SIGTERM ends with its own status', () => {
    const exits: number[] = [];
    const times = [0, 2_000];
    const onSignal = interrupts({
      stop: new AbortController(),
      exit: (status) => exits.push(status),
      now: () => times.shift() ?? 0,
    });
    onSignal('SIGTERM');
    onSignal('SIGTERM');
    expect(exits).toStrictEqual([143]);
  });
});
