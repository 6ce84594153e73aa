import { EMPTY_CHUNK, leaf, type Chunk } from '../../cells/chunk.ts';
import type { ObjectRef } from '../../snapshot/objects.ts';
import { TemplateFailure, type Place } from './failure.ts';
import { Origin, Text, type Mark } from './text.ts';

/** Part of the output that is more than text: sections, profiles and slots of cells. */
export type Item<Slot> =
  | { readonly type: 'text'; readonly chunk: Chunk }
  | { readonly type: 'profile'; readonly name: string; readonly chunk: Chunk }
  | { readonly type: 'section'; readonly name: string; readonly items: readonly Item<Slot>[] }
  | { readonly type: 'slot'; readonly slot: Slot };

/** Something that stands for itself in the output and cannot be captured into a variable. */
export class Profile {
  readonly name: string;
  readonly text: Text;

  constructor(name: string, text: Text) {
    this.name = name;
    this.text = text;
  }
}

/** Collects what a template prints, and which template line printed which line. */
export class Writer {
  #parts: string[] = [];
  #marks: Mark[] = [];
  #line = 0;
  #atLineStart = true;

  write(text: string, place: Place, advances = false): void {
    if (text === '') return;
    if (this.#atLineStart) this.#mark(this.#line, place.line, { place, advances });
    const breaks = countBreaks(text);
    if (!this.#atLineStart && advances && breaks > 0 && text.indexOf('\n') < text.length - 1) {
      this.#mark(this.#line + 1, place.line + 1, { place, advances });
    }
    this.#append(text, breaks);
  }

  /** Writes branded text; what a capture knows about its lines is kept. */
  writeText(text: Text, place: Place): void {
    if (text.marks.length === 0) {
      this.write(text.value, place);
      return;
    }
    for (const mark of text.marks) {
      if (mark.line > 0 || this.#atLineStart) {
        this.#push({ ...mark, line: this.#line + mark.line });
      }
    }
    this.#append(text.value, countBreaks(text.value));
  }

  /** Whether the next character begins a line. */
  get atLineStart(): boolean {
    return this.#atLineStart;
  }

  /** What was written so far as a branded value. */
  text(): Text {
    return new Text(this.#parts.join(''), this.#marks);
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
    [this.#parts, this.#marks, this.#line, this.#atLineStart] = [[], [], 0, true];
    return text;
  }

  #append(text: string, breaks: number): void {
    this.#parts.push(text);
    this.#line += breaks;
    if (text !== '') this.#atLineStart = text.endsWith('\n');
  }

  #mark(line: number, templateLine: number, how: { place: Place; advances: boolean }): void {
    this.#push({ line, source: how.place.source, templateLine, advances: how.advances });
  }

  #push(mark: Mark): void {
    const last = this.#marks.at(-1);
    if (last?.source === mark.source && last.advances && mark.advances) {
      if (mark.templateLine - mark.line === last.templateLine - last.line) return;
    }
    this.#marks.push(mark);
  }
}

/** The writer of a whole template: text, and between it sections, profiles and slots. */
export class ItemWriter<Slot> extends Writer {
  readonly #items: Item<Slot>[] = [];

  override profile(profile: Profile): void {
    const chunk = chunkOf(profile.text, undefined);
    this.add({ type: 'profile', name: profile.name, chunk });
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

const countBreaks = (text: string): number => {
  let breaks = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) breaks += 1;
  return breaks;
};
