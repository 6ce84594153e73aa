/**
 * Runs one program of the checks and says what came of it.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { tallyCheck, tallyVitest, type Tally } from './tally.ts';

/** One program that `npm test` runs. */
export interface Stage {
  readonly name: string;
  /** Program of `node_modules/.bin`, and its arguments. */
  readonly command: readonly [string, ...string[]];
  /** Where vitest leaves its JSON report. Default: the stage is no vitest and counts as one check. */
  readonly report?: string;
  /** The output appears while it runs. Default: afterwards, and only when something failed. */
  readonly live?: boolean;
  /** Default: 300,000 ms. */
  readonly timeoutMs?: number;
}

/** What came of a stage. */
export interface StageResult {
  readonly stage: Stage;
  readonly tally: Tally;
  readonly durationMs: number;
  readonly output: string;
}

const KILL_AFTER_MS = 10_000;

const running = new Set<ChildProcess>();

/** Ends the programs of all stages that run, so that nothing outlives the tests. */
export function stopStages(): void {
  for (const child of running) child.kill('SIGTERM');
}

/** Runs a stage to its end. Never rejects: a program that cannot be started has failed. */
export async function runStage(stage: Stage): Promise<StageResult> {
  const { report } = stage;
  if (report !== undefined) rmSync(report, { force: true });
  const started = performance.now();
  const { ok, output, fault } = await runProgram(stage);
  const counted = report === undefined ? tallyCheck(ok) : tallyVitest(read(report), ok);
  const tally = fault === undefined ? counted : { ...counted, faults: [...counted.faults, fault] };
  return { stage, tally, durationMs: performance.now() - started, output };
}

/**
 * Runs stages, at most `width` at a time, in the order given.
 *
 * @param onResult called as each ends
 */
export async function runStages(
  stages: readonly Stage[],
  width: number,
  onResult: (result: StageResult) => void,
): Promise<StageResult[]> {
  const waiting = [...stages];
  const results: StageResult[] = [];
  const worker = async (): Promise<void> => {
    for (let stage = waiting.shift(); stage !== undefined; stage = waiting.shift()) {
      const result = await runStage(stage);
      results.push(result);
      onResult(result);
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
  return results;
}

interface Ended {
  readonly ok: boolean;
  readonly output: string;
  readonly fault?: string;
}

function runProgram({ command, live = false, timeoutMs = 300_000 }: Stage): Promise<Ended> {
  const [program, ...args] = command;
  const output = live ? 'inherit' : 'pipe';
  const child = spawn(program, args, { stdio: ['ignore', output, output] });
  running.add(child);
  const parts: Buffer[] = [];
  child.stdout?.on('data', (part: Buffer) => parts.push(part));
  child.stderr?.on('data', (part: Buffer) => parts.push(part));
  let fault: string | undefined;
  const timer = setTimeout(() => {
    fault = `stopped after ${timeoutMs / 1000} s`;
    child.kill('SIGTERM');
    setTimeout(() => child.kill('SIGKILL'), KILL_AFTER_MS).unref();
  }, timeoutMs);
  return new Promise((resolve) => {
    const end = (ok: boolean): void => {
      clearTimeout(timer);
      running.delete(child);
      const text = Buffer.concat(parts).toString();
      resolve({ ok, output: text, ...(fault === undefined ? {} : { fault }) });
    };
    child.on('error', (error) => {
      fault = error.message;
      end(false);
    });
    child.on('close', (status) => end(status === 0));
  });
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
