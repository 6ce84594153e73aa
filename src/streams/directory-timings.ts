/** Waiting times in milliseconds; all have defaults that suit people and editors. */
export interface DirectoryTimings {
  /** For how long a file that looks half-written must stay as it is before it counts. Default 25. */
  readonly settleMs: number;
  /** The same for a file that is not valid YAML. Default 100. */
  readonly brokenMs: number;
  /** For how long a file must be gone before its objects are deleted. Default 30. */
  readonly vanishMs: number;
  /** The same in the first seconds after the whole directory came back. Default 1000. */
  readonly returnMs: number;
  /** Between two looks at everything, beside file system events. Default 30000. */
  readonly pollMs: number;
  /** The same while the directory is gone, and four times as long while it cannot be watched. Default 500. */
  readonly absentPollMs: number;
}

export const DEFAULT_TIMINGS: DirectoryTimings = {
  settleMs: 25,
  brokenMs: 100,
  vanishMs: 30,
  returnMs: 1_000,
  pollMs: 30_000,
  absentPollMs: 500,
};
