import { type ChildProcess, spawn } from 'node:child_process';
import { setPriority } from 'node:os';
import {
  concatMap,
  connect,
  defer,
  finalize,
  ignoreElements,
  merge,
  mergeMap,
  Observable,
} from 'rxjs';

/** A child that ended by itself, and how. */
export class ChildEnded extends Error {
  /** It reached the limit of its heap, or the kernel ended it. */
  readonly outOfMemory: boolean;

  constructor(message: string, outOfMemory: boolean) {
    super(message);
    this.name = 'ChildEnded';
    this.outOfMemory = outOfMemory;
  }
}

/** How {@link converse} runs its child. */
export interface ChildLimits {
  /** Heap in MiB. */
  readonly heapMb: number;
  /** Processor time in seconds; it also ends a child whose controller is gone. */
  readonly cpuSeconds: number;
}

/** Below the controller, which serves. */
const NICENESS = 10;
/** Bytes of standard error that are kept. */
const LAST_WORDS = 4_096;

/** No core dump, processor time limited, and the first to go when memory runs out. */
const CONFINED = `echo 1000 >/proc/self/oom_score_adj 2>/dev/null
ulimit -c 0; ulimit -t "$1" 2>/dev/null
shift
exec "$@"`;

/**
 * Talks with a child process over a channel of plain data: emits what it says, and sends what `respond` makes of each
 * message, one after the other and no faster than the child takes it. Unsubscribing kills the child at once; nothing it
 * does can keep it alive. Errors with {@link ChildEnded} when it ends by itself.
 *
 * @param program the JavaScript file of the child
 * @param respond answers to a message, in their order
 * @param limits of the child
 */
export const converse = <From, To extends object>(
  program: string,
  respond: (message: From) => Observable<To>,
  limits: ChildLimits,
): Observable<From> =>
  defer(() => {
    const child = start(program, limits);
    return messagesOf<From>(child).pipe(
      connect((message$) =>
        merge(
          message$,
          message$.pipe(
            mergeMap(respond),
            concatMap((answer) => send(child, answer)),
            ignoreElements(),
          ),
        ),
      ),
      finalize(() => child.kill('SIGKILL')),
    );
  });

const start = (program: string, { heapMb, cpuSeconds }: ChildLimits): ChildProcess => {
  const node = [
    process.execPath,
    `--max-old-space-size=${heapMb}`,
    '--disallow-code-generation-from-strings',
    '--permission',
    '--allow-fs-read=*',
    program,
  ];
  const child = spawn('/bin/sh', ['-c', CONFINED, 'confined', String(cpuSeconds), ...node], {
    env: {},
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    // A Ctrl-C is for who started it, and who started it kills it.
    detached: true,
    serialization: 'advanced',
  });
  if (child.pid !== undefined) lowerPriority(child.pid);
  return child;
};

const messagesOf = <From>(child: ChildProcess): Observable<From> =>
  new Observable((subscriber) => {
    let lastWords = '';
    let hasSpoken = false;
    child.stderr?.on('data', (part: Buffer) => {
      lastWords = `${lastWords}${part.toString()}`.slice(-LAST_WORDS);
    });
    child.on('message', (message) => {
      hasSpoken = true;
      subscriber.next(message as From);
    });
    child.on('error', (error) =>
      subscriber.error(new ChildEnded(`cannot run: ${error.message}`, false)),
    );
    child.on('close', (status, signal) => {
      const outOfMemory = isOutOfMemory(status, signal) || lastWords.includes('heap out of memory');
      // Later its words may quote what it was given.
      const [words = ''] = (!hasSpoken && /^\w*Error\b[^\n]{0,200}/m.exec(lastWords)) || [];
      const how = signal === null ? `status ${String(status)}` : `signal ${signal}`;
      const why = words === '' ? '' : `: ${words}`;
      subscriber.error(new ChildEnded(`it ended with ${how}${why}`, outOfMemory));
    });
  });

/** V8 aborts when its heap is full; the kernel kills. */
const isOutOfMemory = (status: number | null, signal: string | null): boolean =>
  signal === 'SIGKILL' || signal === 'SIGABRT' || status === 134;

const send = (child: ChildProcess, message: object): Observable<never> =>
  new Observable((subscriber) => {
    child.send(message, (error) => {
      // A child that is gone is told by its end.
      if (error === null) subscriber.complete();
    });
  });

const lowerPriority = (pid: number): void => {
  try {
    setPriority(pid, NICENESS);
  } catch {
    // it has ended already
  }
};
