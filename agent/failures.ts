import type { ConflictReason, RejectStage } from '../src/protocol/answers.ts';

/** The request itself is wrong: nothing was written. Answered with `status`. */
export class BadRequest extends Error {
  readonly status: 400 | 413;
  constructor(message: string, status: 400 | 413 = 400) {
    super(message);
    this.name = 'BadRequest';
    this.status = status;
  }
}

/** The fence: the pod does not hold what the controller believes, or lacks bytes. Answered with 409. */
export class Conflict extends Error {
  readonly reason: ConflictReason;
  readonly missing: readonly string[];
  constructor(reason: ConflictReason, missing: readonly string[] = []) {
    super(reason);
    this.name = 'Conflict';
    this.reason = reason;
    this.missing = missing;
  }
}

/** An apply that began and was taken back. Answered with 422. */
export class Rejection extends Error {
  readonly stage: RejectStage;
  constructor(stage: RejectStage, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'Rejection';
    this.stage = stage;
  }
}

/** The client went away before its apply began, so nothing was done. */
export class ClientGone extends Error {
  constructor() {
    super('the client closed the connection');
    this.name = 'ClientGone';
  }
}

/** One line for people from whatever was thrown. */
export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

/** The error code of a failed system call, for example `ENOENT`. */
export function codeOf(error: unknown): string {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : '';
}
