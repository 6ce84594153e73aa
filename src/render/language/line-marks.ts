import type { Place } from './failure.ts';
import type { Inclusion, Mark, Text } from './text.ts';

/** Remembers which template line printed which line of a text. All that provenance costs while a template runs is here. */
export class LineMarks {
  /** The includes around what is printed now. */
  via: Inclusion | undefined;
  readonly #marks: Mark[] = [];
  #line = 0;
  #atLineStart = true;

  constructor(via: Inclusion | undefined) {
    this.via = via;
  }

  get all(): readonly Mark[] {
    return this.#marks;
  }

  /**
   * Text that is printed at a place of a template.
   *
   * @param advances the text stands in the template as it is, so that its further lines come from further template lines
   */
  printed(text: string, place: Place, advances: boolean): void {
    if (this.#atLineStart) this.#mark(0, place, advances);
    const breaks = countBreaks(text);
    if (!this.#atLineStart && advances && breaks > 0 && text.indexOf('\n') < text.length - 1) {
      this.#mark(1, place, advances);
    }
    this.#pass(text, breaks);
  }

  /** Captured text is printed; what is known of its lines is kept. */
  copied({ value, marks }: Text): void {
    for (const mark of marks) {
      if (mark.line > 0 || this.#atLineStart) {
        this.#push({ ...mark, line: this.#line + mark.line });
      }
    }
    this.#pass(value, countBreaks(value));
  }

  #pass(text: string, breaks: number): void {
    this.#line += breaks;
    if (text !== '') this.#atLineStart = text.endsWith('\n');
  }

  /** @param further how many lines behind the current one the mark begins, in text and template alike */
  #mark(further: number, { source, line }: Place, advances: boolean): void {
    this.#push({
      line: this.#line + further,
      source,
      templateLine: line + further,
      advances,
      via: this.via,
    });
  }

  #push(mark: Mark): void {
    const last = this.#marks.at(-1);
    if (last?.source === mark.source && last.via === mark.via && last.advances && mark.advances) {
      if (mark.templateLine - mark.line === last.templateLine - last.line) return;
    }
    this.#marks.push(mark);
  }
}

const countBreaks = (text: string): number => {
  let breaks = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) breaks += 1;
  return breaks;
};
