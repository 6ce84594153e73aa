import type { Frame } from '../http/frame.ts';
import type { CheckedManifest } from '../http/manifest.ts';

/** One request to apply, its manifest read and its parts still on the way. */
export interface ApplyCall {
  readonly manifest: CheckedManifest;
  readonly frame: Frame;
  /** Whether nobody waits for the answer any more. */
  readonly isGone: () => boolean;
}
