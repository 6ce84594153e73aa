import type { Operation } from '../../src/protocol/protocol.ts';

type MapOperation = Extract<Operation, { readonly map: string }>;

/** Reads the answer to `show map <reference>`: a line `key value` each, without the address that HAProxy prints first. */
export const readEntries = (text: string): string[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.slice(line.indexOf(' ') + 1));

/** The entries of one map as lines of text, and what operations have changed of them since. */
export class MapText {
  #lines: string;
  readonly #changes = new Map<string, string | null>();

  constructor(lines: readonly string[]) {
    this.#lines = lines.join('\n');
  }

  /** These were executed. */
  expect(operation: MapOperation): void {
    if (operation.kind === 'map_replace') {
      this.#lines = operation.entries.map((entry) => entry.join(' ')).join('\n');
      this.#changes.clear();
    } else {
      this.#changes.set(operation.key, 'value' in operation ? operation.value : null);
    }
  }

  /** The lines that the map shall have, in order. */
  lines(): readonly string[] {
    const before = this.#lines === '' ? [] : this.#lines.split('\n');
    if (this.#changes.size === 0) return before;
    const added = new Map(this.#changes);
    const kept = before.flatMap((line) => {
      const key = keyOf(line);
      const change = this.#changes.get(key);
      added.delete(key);
      if (change === undefined) return [line];
      return change === null ? [] : [`${key} ${change}`];
    });
    const news = [...added].flatMap(([key, value]) => (value === null ? [] : [`${key} ${value}`]));
    this.#lines = [...kept, ...news].join('\n');
    this.#changes.clear();
    return [...kept, ...news];
  }
}

const keyOf = (line: string): string => line.slice(0, line.indexOf(' '));

/** How a map becomes again what it was: entry by entry, or as a whole where its keys repeat. */
export function mapRepairs(
  map: string,
  wanted: readonly string[],
  real: readonly string[],
): readonly Operation[] {
  if (wanted.length === real.length && wanted.every((line, at) => line === real[at])) return [];
  const [want, have] = [entriesOf(wanted), entriesOf(real)];
  if (want.size < wanted.length || have.size < real.length) {
    return [{ kind: 'map_replace', map, entries: wanted.map(splitLine) }];
  }
  const sets: Operation[] = [];
  for (const [key, value] of want) {
    if (have.get(key) === value) continue;
    sets.push({ kind: have.has(key) ? 'map_set' : 'map_add', map, key, value });
  }
  const surplus = [...have.keys()].filter((key) => !want.has(key));
  return [...sets, ...surplus.map((key): Operation => ({ kind: 'map_delete', map, key }))];
}

const splitLine = (line: string): readonly [string, string] => {
  const key = keyOf(line);
  return [key, line.slice(key.length + 1)];
};

const entriesOf = (lines: readonly string[]): ReadonlyMap<string, string> =>
  new Map(lines.map(splitLine));
