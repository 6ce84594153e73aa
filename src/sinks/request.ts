import { serialisePlan } from '../plan/serialise.ts';
import type { Plan } from '../plan/plan.ts';
import type { ApplyRequest, Desired } from '../ports.ts';
import {
  type Digest,
  LIMITS,
  PROTOCOL_VERSION,
  type Manifest,
  type ManifestFile,
} from '../protocol/protocol.ts';
import type { Render, RenderedFile } from '../render/render.ts';
import type { Decision, PodKnowledge } from './decide.ts';
import { fileDigests } from './decide.ts';
import { chunkBytes, patchBetween } from './patch.ts';

type Apply = Extract<Decision, { do: 'apply' }>;

/** What a request says besides its decision. */
export interface RequestContext {
  readonly desired: Desired;
  readonly known: PodKnowledge;
  readonly sequence: number;
  readonly reloadNotBeforeMs: number;
  readonly reloadIntervalMs: number;
  /** Paths whose bytes must be sent whole, because the agent said so. */
  readonly whole: ReadonlySet<string>;
}

/** The apply request that carries out a decision: manifest, and the bytes the agent lacks. Pure. */
export const buildRequest = (decision: Apply, context: RequestContext): ApplyRequest => {
  const { desired, known } = context;
  const files = decision.render === undefined ? [] : filesFor(decision.render, context);
  const reload = decision.changes.verdict === 'reload';
  // Whoever reloads keeps the plan, so that the next leader understands what runs.
  const keeps = reload || decision.mode === 'reload';
  const plan = decision.render !== undefined && keeps ? serialised(decision.render.plan) : '';
  const manifest: Manifest = {
    protocol: PROTOCOL_VERSION,
    planId: decision.planId,
    epoch: desired.epoch,
    sequence: context.sequence,
    expected: {
      applied: known.roles.applied,
      running: known.roles.running,
      workerOperations: known.roles.workerOperations,
    },
    mode: decision.mode,
    reload,
    reasons: decision.changes.reasons.map((reason) => reason.message),
    reloadNotBeforeMs: Math.ceil(context.reloadNotBeforeMs),
    reloadIntervalMs: context.reloadIntervalMs,
    files: files.map(({ file }) => file),
    operations: decision.changes.operations,
    inPlaceOperations: decision.changes.inPlaceOperations,
    ...(desired.refused.size > 0 ? { refused: refusedOf(desired, known) } : {}),
    ...(desired.accepted === undefined ? {} : { validated: desired.accepted.plan.id }),
    planLength: Buffer.byteLength(plan),
  };
  return {
    manifest,
    plan,
    parts: files.flatMap(({ bytes }) => (bytes === undefined ? [] : [bytes])),
  };
};

/** The refused plans that this pod could be found running: the others are of no use to it. */
const refusedOf = (
  { refused }: Desired,
  { roles: { applied, running }, pendingReload }: PodKnowledge,
): readonly Digest[] =>
  [...new Set([applied, running, pendingReload?.planId ?? null])].filter(
    (planId): planId is Digest => planId !== null && refused.has(planId),
  );

interface FilePart {
  readonly file: ManifestFile;
  readonly bytes: Uint8Array | undefined;
}

const filesFor = (render: Render, context: RequestContext): readonly FilePart[] => {
  const digests = fileDigests(render);
  return [...render.files.values()].map((file) =>
    filePart(file, digests.get(file.path) ?? '', context),
  );
};

const filePart = (file: RenderedFile, digest: string, context: RequestContext): FilePart => {
  const { path, kind } = file;
  const head = { path, kind, digest, size: file.text.size };
  const held = context.known.files.get(path);
  if (held === digest && !context.whole.has(path)) return { file: head, bytes: undefined };
  const before = context.known.render;
  const base = before?.files.get(path);
  const isBase =
    before !== undefined && base !== undefined && fileDigests(before).get(path) === held;
  if (!isBase || held === undefined || context.whole.has(path)) {
    const bytes = chunkBytes(file.text);
    return { file: { ...head, inline: { length: bytes.length } }, bytes };
  }
  const { offset, replaced, bytes } = patchBetween(base.text, file.text);
  return {
    file: { ...head, inline: { length: bytes.length, base: held, offset, replaced } },
    bytes,
  };
};

const serialisedOf = new WeakMap<Plan, string>();

/** Shared by all pods that reload on the same plan. */
const serialised = (plan: Plan): string => {
  const known = serialisedOf.get(plan);
  if (known !== undefined) return known;
  const text = serialisePlan(plan);
  if (Buffer.byteLength(text) > LIMITS.planBytes) {
    throw new RangeError(`the plan needs more than ${String(LIMITS.planBytes)} bytes`);
  }
  serialisedOf.set(plan, text);
  return text;
};
