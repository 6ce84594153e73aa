import { rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { ManifestFile } from '../../src/protocol/protocol.ts';
import type { ApplyCall } from '../apply/apply-call.ts';
import { hashFile, spliced, writeContent, type Content } from './content.ts';
import { BadRequest, Conflict } from '../failures.ts';
import { modeOf } from './objects.ts';
import type { Plans } from '../apply/plans.ts';
import type { Pod } from '../pod.ts';
import type { Transition } from './transition.ts';

/**
 * Reads the body: every file that changes is written beside the tree and checked, the rest is skipped, the plan is kept.
 *
 * @throws BadRequest on bytes that are not what the manifest says; Conflict on a patch whose base is not on disk any
 *   more; what the file system throws
 */
export async function stageBody(call: ApplyCall, transition: Transition, pod: Pod): Promise<void> {
  const { manifest, frame } = call;
  const changing = new Map(transition.record.changes.map((change) => [change.path, change.next]));
  for (const file of manifest.files) {
    const changes = (changing.get(file.path) ?? null) !== null;
    if (file.inline === undefined) {
      if (changes) await stageHeld(file, transition, pod);
      continue;
    }
    const part = frame.part(file.inline.length);
    if (changes) await stageFile(file, part, { transition, pod });
    else await drain(part);
  }
  await finish(call, pod.plans);
}

/** Reads a body of which no file is needed. */
export async function drainBody(call: ApplyCall, plans: Plans): Promise<void> {
  for (const { inline } of call.manifest.files) {
    if (inline !== undefined) await drain(call.frame.part(inline.length));
  }
  await finish(call, plans);
}

async function finish({ manifest, frame }: ApplyCall, plans: Plans): Promise<void> {
  if (manifest.planLength > 0) {
    await plans.put(manifest.planId, frame.part(manifest.planLength));
  }
  await frame.end();
}

async function stageFile(
  file: ManifestFile,
  part: AsyncIterable<Uint8Array>,
  { transition, pod }: { readonly transition: Transition; readonly pod: Pod },
): Promise<void> {
  const { inline, path } = file;
  const patch = inline?.base !== undefined;
  const bytes = patch
    ? spliced(pod.tree.at(path), {
        offset: inline.offset ?? 0,
        replaced: inline.replaced ?? 0,
        bytes: part,
      })
    : part;
  const content = await writeContent(transition.stagePath(path), bytes, modeOf(file.kind));
  if (isContent(file, content)) return;
  if (patch) {
    await noteDrift(path, pod);
    throw new Conflict('missing_content', [path]);
  }
  throw new BadRequest(`the bytes of ${path} do not have its digest`);
}

/** The bytes are held already and only their kind, and so the permissions, changes. */
async function stageHeld(file: ManifestFile, transition: Transition, pod: Pod): Promise<void> {
  const held = spliced(pod.tree.at(file.path), {
    offset: 0,
    replaced: 0,
    bytes: Readable.from([]),
  });
  const staged = transition.stagePath(file.path);
  const content = await writeContent(staged, held, modeOf(file.kind));
  if (isContent(file, content)) return;
  await noteDrift(file.path, pod);
  await rm(staged, { force: true });
  throw new Conflict('missing_content', [file.path]);
}

/** A base that is not what it should be: remember what is really there, so the controller sends the whole file. */
async function noteDrift(path: string, pod: Pod): Promise<void> {
  const held = pod.tree.held.get(path);
  const real = await hashFile(pod.tree.at(path));
  if (held === undefined || held.digest === real?.digest) return;
  pod.metrics.count('haptic_agent_drift_found_total', 'file');
  pod.tree.noteDrift(path, real);
  pod.holding.generation += 1;
}

const isContent = (file: ManifestFile, content: Content): boolean =>
  content.digest === file.digest && content.size === file.size;

async function drain(part: AsyncIterable<Uint8Array>): Promise<void> {
  const chunks = part[Symbol.asyncIterator]();
  while ((await chunks.next()).done !== true);
}
