import type { Frame } from './frame.ts';
import type { CheckedManifest } from './manifest.ts';

/** One request to apply, its manifest read and its parts still on the way. */
export interface ApplyCall {
  readonly manifest: CheckedManifest;
  readonly frame: Frame;
  /** Whether nobody waits for the answer any more. */
  readonly isGone: () => boolean;
}
