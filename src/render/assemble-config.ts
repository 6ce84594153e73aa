/** From placed items to the text and the sections of the configuration file. */
import { EMPTY_CHUNK, concat, concatLike, leaf, type Chunk } from '../cells/chunk.ts';
import type { Section } from '../plan/plan.ts';
import type { Committed, SlotPlan } from './committed.ts';
import { isBlank } from './evaluate.ts';
import { TemplateFailure } from './language/failure.ts';
import type { ProfileFacts } from './language/writer.ts';
import type { PlacedItem } from './slot-plans.ts';
import type { TextDigests } from './text-digests.ts';

export interface AssembledConfig {
  readonly chunk: Chunk;
  readonly sections: readonly (Omit<Section, 'digest'> & { readonly digest: string })[];
  /** What each profile sets, and the digest of its text. */
  readonly profiles: readonly (ProfileFacts & { readonly text: string })[];
  /** Text of each section and profile but the backends, by kind and name. */
  readonly texts: ReadonlyMap<string, Chunk>;
}

interface Part {
  readonly kind: Section['kind'];
  readonly name: string;
  readonly chunk: Chunk;
  readonly profile?: ProfileFacts;
}

type Before = Pick<Committed, 'slots' | 'backendChunks' | 'sections'>;

/**
 * Text outside of sections forms core sections by its position. Every section ends with a line feed.
 *
 * @param committed slots and backends of now, sections of the last complete render
 * @throws TemplateFailure for two profiles of one name, or two places for backends
 */
export const assembleConfig = (
  items: readonly PlacedItem[],
  committed: Before,
  digests: TextDigests,
): AssembledConfig => {
  const parts = partsOf(items, committed);
  if (!parts.some(({ kind }) => kind === 'backends')) parts.push(backendsPart(committed));
  refuseDuplicates(parts);
  const profiles: (ProfileFacts & { readonly text: string })[] = [];
  const texts = new Map<string, Chunk>();
  const sections = parts.map(({ kind, name, chunk, profile }) => {
    // The section of the backends follows from its records; its text is never put together.
    if (kind === 'backends') return { kind, name, digest: '' };
    texts.set(partId({ kind, name }), chunk);
    const digest = digests.of(chunk, kind === 'core' ? partId({ kind, name }) : undefined);
    if (profile !== undefined) profiles.push({ ...profile, text: digest });
    return { kind, name, digest };
  });
  return { chunk: concat(parts.map(({ chunk }) => chunk)), sections, profiles, texts };
};

const partId = ({ kind, name }: Pick<Part, 'kind' | 'name'>): string => `${kind} ${name}`;

const partsOf = (items: readonly PlacedItem[], committed: Before): Part[] => {
  const parts: Part[] = [];
  let run: Chunk[] = [];
  let positions = 0;
  const endRun = (): void => {
    const isEmpty = run.every((chunk) => chunk.text !== undefined && isBlank(chunk.text));
    if (!isEmpty) {
      positions += 1;
      parts.push(textPart({ kind: 'core', name: `#${positions}` }, run, committed));
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

const partOf = (item: Exclude<PlacedItem, { type: 'text' }>, committed: Before): Part => {
  if (item.type === 'slot') return backendsPart(committed);
  const { name } = item;
  if (item.type === 'section') {
    return textPart({ kind: 'core', name }, contentsOf(item.items, committed), committed);
  }
  const { type, chunk, ...profile } = item;
  return { ...textPart({ kind: type, name }, [chunk], committed), profile };
};

const backendsPart = ({ backendChunks }: Before): Part => ({
  ...{ kind: 'backends', name: 'backends', chunk: backendChunks.chunk },
});

/** A part that consists of these texts; the same chunk as before when they are the same. */
const textPart = (
  part: Pick<Part, 'kind' | 'name'>,
  texts: readonly Chunk[],
  { sections }: Before,
): Part => ({ ...part, chunk: concatLike(sections.get(partId(part)), endLine(texts)) });

/** Texts of items that hold no sections: of a section, or of a file. */
export const contentsOf = (
  items: readonly PlacedItem[],
  committed: Pick<Committed, 'slots'>,
): readonly Chunk[] =>
  items.flatMap((item) => {
    if (item.type === 'text') return [item.chunk];
    return item.type === 'slot' ? [slotChunk(item.slot, committed)] : [];
  });

const slotChunk = (slot: SlotPlan, { slots }: Pick<Committed, 'slots'>): Chunk =>
  slots.get(slot.id)?.chunks.chunk ?? EMPTY_CHUNK;

const LINE_END = leaf('\n');

const endLine = (texts: readonly Chunk[]): readonly Chunk[] => {
  const last = texts.findLast(({ size }) => size > 0);
  return last === undefined || endsLine(last) ? texts : [...texts, LINE_END];
};

const endsLine = (chunk: Chunk): boolean => {
  if (chunk.text !== undefined) return chunk.text.endsWith('\n');
  const last = chunk.children.findLast((child) => child.size > 0);
  return last !== undefined && endsLine(last);
};

const refuseDuplicates = (parts: readonly Part[]): void => {
  const seen = new Set<string>();
  for (const { kind, name } of parts) {
    const id = partId({ kind, name });
    if (seen.has(id)) {
      throw new TemplateFailure(`the configuration has two sections "${name}" of kind ${kind}`, {
        nextStep:
          'Give each section and each profile a name of its own, and let one tag declare the backends.',
      });
    }
    seen.add(id);
  }
};
