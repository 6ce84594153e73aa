import { describe, expect, it } from 'vitest';
import { isAlive } from '../../../src/cli/orphans.ts';
import { childProcess, type ProcessEvent } from '../../../src/cli/process.ts';

/** Runs a script of Node.js until it ends; what was emitted, and the error. */
const run = (
  script: string,
): Promise<{ events: readonly ProcessEvent[]; error: Error | undefined }> =>
  new Promise((resolve) => {
    const events: ProcessEvent[] = [];
    childProcess({ command: process.execPath, arguments: ['-e', script] }).subscribe({
      next: (event) => events.push(event),
      error: (error: unknown) =>
        resolve({ events, error: error instanceof Error ? error : undefined }),
    });
  });

describe('a child process', () => {
  it('tells its start and its output line by line; its end is an error', async () => {
    const { events, error } = await run('console.log("a\\nb"); console.error("c")');
    expect(events[0]).toMatchObject({ type: 'started', pid: expect.any(Number) as number });
    expect(events).toContainEqual({ type: 'line', stream: 'stdout', text: 'b' });
    expect(events).toContainEqual({ type: 'line', stream: 'stderr', text: 'c' });
    expect(error?.message).toBe('node ended with status 0');
  });

  it('that fails repeats its last words', async () => {
    const { error } = await run(
      'for (let i = 0; i < 12; i++) console.error("line " + i); process.exitCode = 3',
    );
    expect(error?.message).toMatch(/ended with status 3: line 2 \/ line 3 \/ .* \/ line 11$/);
  });

  it('that is killed names the signal', async () => {
    const { error } = await run('process.kill(process.pid, "SIGKILL")');
    expect(error?.message).toMatch(/ended with signal SIGKILL$/);
  });

  it('that passes a signal on as its status names it too', async () => {
    const { error } = await run('process.exitCode = 137');
    expect(error?.message).toBe('node ended with status 137 (SIGKILL)');
  });

  it('is called as its options say', async () => {
    const error = await new Promise<unknown>((resolve) => {
      childProcess({ name: 'x', command: process.execPath, arguments: ['-e', ''] }).subscribe({
        error: resolve,
      });
    });
    expect(String(error)).toBe('ProcessEnded: x ended with status 0');
  });

  it('that cannot be started is an error', async () => {
    const error = await new Promise<unknown>((resolve) => {
      childProcess({ command: '/nowhere', arguments: [] }).subscribe({ error: resolve });
    });
    expect(String(error)).toMatch(/: nowhere cannot run: .*ENOENT/);
  });

  it('sees no environment but the one given', async () => {
    const { events } = await run('console.log(JSON.stringify(Object.keys(process.env)))');
    expect(events).toContainEqual({ type: 'line', stream: 'stdout', text: '[]' });
  });

  it('is ended on unsubscribing, by force when it does not listen', async () => {
    const script =
      'process.on("SIGTERM", () => {}); console.log("deaf"); setInterval(() => {}, 1000)';
    const pid = await new Promise<number>((resolve) => {
      let started = 0;
      const subscription = childProcess({
        command: process.execPath,
        arguments: ['-e', script],
        graceMs: 50,
      }).subscribe((event) => {
        if (event.type === 'started') started = event.pid;
        if (event.type !== 'line') return;
        subscription.unsubscribe();
        resolve(started);
      });
    });
    await expect.poll(() => isAlive(pid), { timeout: 5_000 }).toBe(false);
  });
});
