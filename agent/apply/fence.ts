import type { Digest } from '../../src/protocol/protocol.ts';
import { Conflict } from '../failures.ts';
import type { Holding } from './holding.ts';
import type { CheckedManifest } from '../http/manifest.ts';
import type { Tree } from '../files/tree.ts';

/**
 * Refuses what was made for another pod than this one is now. Nothing is written before.
 *
 * @throws Conflict
 */
export function checkEpoch(manifest: CheckedManifest, holding: Holding): void {
  const { epoch } = manifest;
  if (
    epoch < holding.highestEpoch ||
    (epoch === holding.highestEpoch && isAnother(manifest, holding))
  )
    throw new Conflict('stale_epoch');
}

/** Two leaders of one epoch: the Lease was deleted and did not remember the first. Only the one that wrote first is obeyed. */
const isAnother = ({ leader }: CheckedManifest, holding: Holding): boolean =>
  leader !== '' && holding.leader !== '' && leader !== holding.leader;

/**
 * The rest of the fence: what the controller believes must be so, and what it sends must be enough.
 *
 * @throws Conflict
 */
export function checkBaseline(manifest: CheckedManifest, holding: Holding): void {
  const { expected } = manifest;
  if (manifest.mode === 'revert' && refusedRuns(manifest, holding)) {
    throw new Conflict('target_running');
  }
  if (differs(expected.applied, holding.applied)) throw new Conflict('baseline_mismatch');
  const count = expected.workerOperations;
  if (
    differs(expected.running, holding.running) ||
    (count !== undefined && count !== holding.workerOperations)
  ) {
    throw new Conflict('worker_mismatch');
  }
  if (needsKnownWorker(manifest) && (holding.applied === null || holding.running === null)) {
    throw new Conflict('unknown_baseline');
  }
}

/**
 * Bytes that are neither held nor sent.
 *
 * @throws Conflict naming the paths
 */
export function checkContent(manifest: CheckedManifest, tree: Tree): void {
  const missing: string[] = [];
  for (const { path, digest, inline } of manifest.files) {
    const held = tree.held.get(path);
    if (held?.digest === digest) continue;
    if (inline === undefined || (inline.base !== undefined && inline.base !== held?.digest)) {
      missing.push(path);
    }
  }
  if (missing.length > 0) throw new Conflict('missing_content', missing);
}

const refusedRuns = (manifest: CheckedManifest, holding: Holding): boolean =>
  holding.running !== null && (manifest.refused ?? []).includes(holding.running);

const differs = (expected: Digest | null | undefined, real: Digest | null): boolean =>
  expected !== undefined && expected !== real;

/** A revert without files: back to the pod's own last known good tree. */
export const isRestore = ({ mode, files }: CheckedManifest): boolean =>
  mode === 'revert' && files.length === 0;

/**
 * Only the whole set of files together with a reload leads out of an unknown baseline. The pod's own last known good
 * files can be put back whatever the worker holds, as long as nothing is asked of it.
 */
function needsKnownWorker(manifest: CheckedManifest): boolean {
  const { mode, reload, operations, inPlaceOperations } = manifest;
  if (reload) return mode !== 'reload' && inPlaceOperations.length > 0;
  return mode !== 'reload' && !(isRestore(manifest) && operations.length === 0);
}
