import type { Operation } from '../protocol/protocol.ts';

/** An operation that the state does not allow: the baseline is not what it was thought to be. */
export class OperationError extends Error {
  readonly code = 'operation-impossible';
  readonly operation: Operation;
  constructor(operation: Operation, message: string) {
    super(`${operation.kind}: ${message}`);
    this.name = 'OperationError';
    this.operation = operation;
  }
}
