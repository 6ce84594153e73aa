/**
 * Loaded into an agent before its own modules (`node --import`): counts its file-system calls, and kills it or makes them
 * fail or last at the one that a test names. Nothing of the agent knows about it. The test writes a {@link Fault} into the
 * file that `HAPTIC_TEST_FAULT` names and sends SIGUSR2; one that is there at the start counts from the start.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';

/** What happens to the calls from now on; they are counted from 1. */
export type Fault =
  | { readonly do: 'nothing' }
  /** The process ends by SIGKILL before call `at`, or after it. */
  | { readonly do: 'kill'; readonly at: number; readonly side: 'before' | 'after' }
  /** Calls that write fail with this code: call `at` alone, or all from it on. */
  | {
      readonly do: 'fail';
      readonly at: number;
      readonly code: 'ENOSPC' | 'EROFS' | 'EIO';
      readonly lasting: boolean;
    }
  /** Every call takes so long. */
  | { readonly do: 'wait'; readonly ms: number };

/** One line on standard output for each call, in the order in which they begin. */
export interface CallLine {
  readonly msg: 'fs call';
  readonly at: number;
  readonly call: string;
}

const FILE = process.env['HAPTIC_TEST_FAULT'] ?? '';

let fault: Fault | undefined;
let count = 0;

const say = (line: CallLine | { readonly msg: 'armed'; readonly fault: Fault }): void => {
  process.stdout.write(`${JSON.stringify(line)}\n`);
};

const { readFileSync } = fs;
function arm(): void {
  fault = JSON.parse(readFileSync(FILE, 'utf8')) as Fault;
  count = 0;
  say({ msg: 'armed', fault });
}

process.on('SIGUSR2', arm);
if (fs.existsSync(FILE)) arm();

type Call = (...args: unknown[]) => unknown;
interface Hooked {
  readonly name: string;
  readonly writes: boolean;
  readonly isSync: boolean;
}

const die = (): void => {
  process.kill(process.pid, 'SIGKILL');
};

function refuse({ name, isSync }: Hooked, code: string): unknown {
  const error = Object.assign(new Error(`${code}: made to fail, ${name}`), { code });
  if (isSync) throw error;
  return Promise.reject(error);
}

const opensForReading = ({ name }: Hooked, [, flags]: readonly unknown[]): boolean =>
  name === 'open' && (flags === 'r' || (typeof flags === 'number' && (flags & 3) === 0));

const writes = (hooked: Hooked, args: readonly unknown[]): boolean =>
  hooked.writes && !opensForReading(hooked, args);

/** What the call comes to; `run` does what was asked. */
function faulty(hooked: Hooked, args: readonly unknown[], run: () => unknown): unknown {
  if (fault === undefined) return run();
  const at = (count += 1);
  say({ msg: 'fs call', at, call: hooked.name });
  switch (fault.do) {
    case 'nothing':
      return run();
    case 'wait':
      return hooked.isSync ? run() : sleep(fault.ms).then(run);
    case 'fail':
      return writes(hooked, args) && isMeant(fault, at) ? refuse(hooked, fault.code) : run();
    case 'kill':
      return at === fault.at ? deadly(fault.side, run) : run();
  }
}

const isMeant = (fail: Extract<Fault, { do: 'fail' }>, at: number): boolean =>
  fail.lasting ? at >= fail.at : at === fail.at;

function deadly(side: 'before' | 'after', run: () => unknown): unknown {
  if (side === 'before') die();
  const result = run();
  if (result instanceof Promise) return result.finally(die);
  die();
  return result;
}

function hook(target: object, hooked: Hooked): void {
  const original = Reflect.get(target, hooked.name) as Call;
  const replacement = function (this: unknown, ...args: unknown[]): unknown {
    return faulty(hooked, args, () => Reflect.apply(original, this, args));
  };
  Reflect.set(target, hooked.name, replacement);
}

const READING = ['lstat', 'readFile', 'readdir'];
const WRITING = ['appendFile', 'chmod', 'link', 'mkdir', 'open', 'rename', 'rm', 'rmdir', 'unlink'];
const HANDLE_READING = ['close', 'read', 'stat'];
const HANDLE_WRITING = ['chmod', 'sync', 'write', 'writeFile'];
const SYNC_WRITING = ['openSync', 'renameSync', 'writeFileSync'];

const handle = await fs.promises.open('/dev/null');
const prototype = Object.getPrototypeOf(handle) as object;
await handle.close();
const lists = [
  [fs.promises, READING, { writes: false, isSync: false }],
  [fs.promises, [...WRITING, 'writeFile'], { writes: true, isSync: false }],
  [prototype, HANDLE_READING, { writes: false, isSync: false }],
  [prototype, HANDLE_WRITING, { writes: true, isSync: false }],
  [fs, SYNC_WRITING, { writes: true, isSync: true }],
  [fs, ['closeSync'], { writes: false, isSync: true }],
] as const;
for (const [target, names, kind] of lists) {
  for (const name of names) hook(target, { name, ...kind });
}
syncBuiltinESMExports();
