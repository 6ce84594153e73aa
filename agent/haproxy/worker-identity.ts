/** Which worker answers: a pid alone may come again after a restart of the container. */
export interface WorkerIdentity {
  readonly pid: number;
  /** Milliseconds since 1970, in whole seconds. */
  readonly startMs: number;
}

export const sameWorker = (a: WorkerIdentity | null, b: WorkerIdentity | null): boolean =>
  a?.pid === b?.pid && a?.startMs === b?.startMs;
