import type { OperationResult } from '../../src/protocol/answers.ts';
import type { Operation } from '../../src/protocol/protocol.ts';
import { targetOf } from '../http/instruction.ts';
import type { Reply } from './worker.ts';

/** What came of a list of operations. */
export interface Execution {
  /** Completely executed, in order. */
  readonly done: readonly Operation[];
  /** Those that were refused; nothing after the line of the first one was sent. At most 32. */
  readonly failed: readonly OperationResult[];
  /** False: some operation may have been executed in part, so what the worker holds is not known. */
  readonly certain: boolean;
}

export const NOTHING: Execution = { done: [], failed: [], certain: true };

const MAX_FAILED = 32;

/** One operation and what its commands were answered. */
export interface Outcome {
  readonly operation: Operation;
  readonly own: readonly Reply[];
  /** Every command of the operation was sent. */
  readonly complete: boolean;
}

export const outcomeOf = (operation: Operation, reply: Reply | undefined): Outcome => ({
  operation,
  own: reply === undefined ? [] : [reply],
  complete: reply !== undefined,
});

/** An operation of which no command took effect is just not done; one of which some did leaves the worker unknown. */
export function summarize(outcomes: readonly Outcome[]): Execution {
  const done: Operation[] = [];
  const failed: OperationResult[] = [];
  let certain = true;
  for (const { operation, own, complete } of outcomes) {
    const bad = own.find((reply) => !reply.ok);
    if (bad === undefined) {
      if (complete) done.push(operation);
      else if (own.length > 0) certain = false;
      continue;
    }
    failed.push(failure(operation, bad.text));
    if (own.some((reply) => reply.ok || 'lost' in reply)) certain = false;
  }
  return { done, failed: failed.slice(0, MAX_FAILED), certain };
}

/** An operation that was refused, for people. */
export function failure(operation: Operation | undefined, message: string): OperationResult {
  return {
    kind: operation?.kind ?? 'server_add',
    target: operation === undefined ? '' : targetOf(operation),
    ok: false,
    message: message.slice(0, 1_000),
  };
}

/** Nothing was done, because of one operation. */
export const refused = (
  operation: Operation | undefined,
  message: string,
  certain = true,
): Execution => ({ done: [], failed: [failure(operation, message)], certain });
