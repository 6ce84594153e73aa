/** From placed items to the text and the sections of the configuration file. */
import { EMPTY_CHUNK, concat, leaf, type Chunk } from '../cells/chunk.ts';
import type { Profile, Section } from '../plan/plan.ts';
import type { Committed, SlotPlan } from './committed.ts';
import { isBlank } from './evaluate.ts';
import { TemplateFailure } from './language/failure.ts';
import type { PlacedItem } from './slot-plans.ts';
import type { TextDigests } from './text-digests.ts';

export interface AssembledConfig {
  readonly chunk: Chunk;
  readonly sections: readonly (Omit<Section, 'digest'> & { readonly digest: string })[];
  /** Digest of the text of each profile. */
  readonly profiles: ReadonlyMap<string, Profile['digest']>;
}

interface Part {
  readonly kind: Section['kind'];
  readonly name: string;
  readonly chunk: Chunk;
}

/**
 * Text outside of sections forms core sections by its position. Every section ends with a line feed.
 *
 * @throws TemplateFailure for two profiles of one name, or two places for backends
 */
export const assembleConfig = (
  items: readonly PlacedItem[],
  committed: Pick<Committed, 'slots' | 'backendChunks'>,
  digests: TextDigests,
): AssembledConfig => {
  const parts = partsOf(items, committed);
  if (!parts.some(({ kind }) => kind === 'backends')) {
    parts.push({ kind: 'backends', name: 'backends', chunk: committed.backendChunks.chunk });
  }
  refuseDuplicates(parts);
  const profiles = new Map<string, string>();
  const sections = parts.map(({ kind, name, chunk }) => {
    // The section of the backends follows from its records; its text is never put together.
    const digest = kind === 'backends' ? '' : digests.of(chunk);
    if (kind === 'profile') profiles.set(name, digest);
    return { kind, name, digest };
  });
  return { chunk: concat(parts.map(({ chunk }) => chunk)), sections, profiles };
};

const partsOf = (
  items: readonly PlacedItem[],
  committed: Pick<Committed, 'slots' | 'backendChunks'>,
): Part[] => {
  const parts: Part[] = [];
  let run: Chunk[] = [];
  let positions = 0;
  const endRun = (): void => {
    const isEmpty = run.every((chunk) => chunk.text !== undefined && isBlank(chunk.text));
    if (!isEmpty) {
      positions += 1;
      parts.push({ kind: 'core', name: `#${positions}`, chunk: endLine(concat(run)) });
    }
    run = [];
  };
  for (const item of items) {
    if (item.type === 'text') run.push(item.chunk);
    else if (item.type === 'slot' && !item.slot.declaresBackends)
      run.push(slotChunk(item.slot, committed));
    else {
      endRun();
      parts.push(partOf(item, committed));
    }
  }
  endRun();
  return parts;
};

const partOf = (
  item: Exclude<PlacedItem, { type: 'text' }>,
  committed: Pick<Committed, 'slots' | 'backendChunks'>,
): Part => {
  if (item.type === 'slot') {
    return { kind: 'backends', name: 'backends', chunk: committed.backendChunks.chunk };
  }
  if (item.type === 'profile') {
    return { kind: 'profile', name: item.name, chunk: endLine(item.chunk) };
  }
  return { kind: 'core', name: item.name, chunk: endLine(contentOf(item.items, committed)) };
};

/** Text of items that hold no sections: of a section, or of a file. */
export const contentOf = (
  items: readonly PlacedItem[],
  committed: Pick<Committed, 'slots'>,
): Chunk =>
  concat(
    items.flatMap((item) => {
      if (item.type === 'text') return [item.chunk];
      return item.type === 'slot' ? [slotChunk(item.slot, committed)] : [];
    }),
  );

const slotChunk = (slot: SlotPlan, { slots }: Pick<Committed, 'slots'>): Chunk =>
  slots.get(slot.id)?.chunks.chunk ?? EMPTY_CHUNK;

const LINE_END = leaf('\n');

const endLine = (chunk: Chunk): Chunk =>
  chunk.size === 0 || endsLine(chunk) ? chunk : concat([chunk, LINE_END]);

const endsLine = (chunk: Chunk): boolean => {
  if (chunk.text !== undefined) return chunk.text.endsWith('\n');
  const last = chunk.children.findLast((child) => child.size > 0);
  return last !== undefined && endsLine(last);
};

const refuseDuplicates = (parts: readonly Part[]): void => {
  const seen = new Set<string>();
  for (const { kind, name } of parts) {
    const id = `${kind} ${name}`;
    if (seen.has(id)) {
      throw new TemplateFailure(`the configuration has two sections "${name}" of kind ${kind}`, {
        nextStep:
          'Give each section and each profile a name of its own, and let one tag declare the backends.',
      });
    }
    seen.add(id);
  }
};
