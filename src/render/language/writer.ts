import type { Profile as PlanProfile } from '../../plan/plan.ts';
import { EMPTY_CHUNK, leaf, type Chunk } from '../../cells/chunk.ts';
import type { ObjectRef } from '../../snapshot/objects.ts';
import { TemplateFailure, type Place } from './failure.ts';
import { LineMarks } from './line-marks.ts';
import { Origin, Text, type Inclusion } from './text.ts';

/** Name of a profile, and what its text is known to set. */
export type ProfileFacts = Omit<PlanProfile, 'digest'>;

/** Part of the output that is more than text: sections, profiles and slots of cells. */
export type Item<Slot> =
  | { readonly type: 'text'; readonly chunk: Chunk }
  | ({ readonly type: 'profile'; readonly chunk: Chunk } & ProfileFacts)
  | { readonly type: 'section'; readonly name: string; readonly items: readonly Item<Slot>[] }
  | { readonly type: 'slot'; readonly slot: Slot };

/** Something that stands for itself in the output and cannot be captured into a variable. */
export class Profile {
  readonly facts: ProfileFacts;
  readonly text: Text;

  constructor(facts: ProfileFacts, text: Text) {
    this.facts = facts;
    this.text = text;
  }
}

/** Collects what a template prints, and which template line printed which line. */
export class Writer {
  #parts: string[] = [];
  #marks: LineMarks;

  /** @param via the includes around what is printed here */
  constructor(via?: Inclusion) {
    this.#marks = new LineMarks(via);
  }

  /** The includes around what is printed now. */
  get via(): Inclusion | undefined {
    return this.#marks.via;
  }

  /** Runs something that prints here inside further includes. */
  within(via: Inclusion | undefined, inside: () => void): void {
    const around = this.#marks.via;
    this.#marks.via = via;
    try {
      inside();
    } finally {
      this.#marks.via = around;
    }
  }

  write(text: string, place: Place, advances = false): void {
    if (text === '') return;
    this.#marks.printed(text, place, advances);
    this.#parts.push(text);
  }

  /** Writes branded text; what a capture knows about its lines is kept. */
  writeText(text: Text, place: Place): void {
    if (text.marks.length === 0) {
      this.write(text.value, place);
      return;
    }
    this.#marks.copied(text);
    if (text.value !== '') this.#parts.push(text.value);
  }

  /** Whether the next character begins a line. */
  get atLineStart(): boolean {
    return this.#parts.at(-1)?.endsWith('\n') ?? true;
  }

  /** What was written so far as a branded value. */
  text(): Text {
    return new Text(this.#parts.join(''), this.#marks.all);
  }

  chunk(object: ObjectRef | undefined): Chunk {
    return chunkOf(this.text(), object);
  }

  profile(_profile: Profile, place: Place): void {
    throw new TemplateFailure('a profile cannot be captured, or printed by a cell', {
      place,
      nextStep: 'Print {{ profile(…) }} at the top level of the main template.',
    });
  }

  protected take(): Text {
    const text = this.text();
    [this.#parts, this.#marks] = [[], new LineMarks(this.via)];
    return text;
  }
}

/** The writer of a whole template: text, and between it sections, profiles and slots. */
export class ItemWriter<Slot> extends Writer {
  readonly #items: Item<Slot>[] = [];

  override profile(profile: Profile): void {
    const chunk = chunkOf(profile.text, undefined);
    this.add({ type: 'profile', ...profile.facts, chunk });
  }

  add(item: Item<Slot>): void {
    this.#flush();
    this.#items.push(item);
  }

  items(): readonly Item<Slot>[] {
    this.#flush();
    return this.#items;
  }

  #flush(): void {
    const chunk = chunkOf(this.take(), undefined);
    if (chunk !== EMPTY_CHUNK) this.#items.push({ type: 'text', chunk });
  }
}

/** A leaf that remembers where its lines come from. */
export const chunkOf = (text: Text, object: ObjectRef | undefined): Chunk =>
  leaf(text.value, new Origin(text.marks, object));
