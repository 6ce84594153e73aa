/** Which cells are behind the texts and declarations of a render. Looks at all of them: for explanations only. */
import type { Chunk } from '../cells/chunk.ts';
import type { RouteModel } from '../routing/model.ts';
import type { Committed } from './committed.ts';
import type { CellResult } from './evaluate.ts';
import type { Effects } from './language/effects.ts';
import type { Place } from './language/failure.ts';
import type { LineMaker, MadeLine, RouteElement } from './made-line.ts';

/** The parts of a render that hold its cells. */
export type CellSources = Pick<Committed, 'roots' | 'slots' | 'maps'>;

interface Claim {
  /** Undefined for a whole template. */
  readonly maker: LineMaker | undefined;
  readonly place: Place | undefined;
}

type Made = Omit<MadeLine, 'text'>;

const COLLECTIONS = ['hosts', 'backends', 'certificates'] as const;

/** The cells of one render by what they made. */
export class CellsOfRender {
  readonly #printed = new Map<Chunk, LineMaker>();
  /** By path, then by the text of the line. */
  readonly #lines = new Map<string, Map<string, Claim[]>>();
  /** By path. */
  readonly #files = new Map<string, Claim[]>();
  readonly #maps: CellSources['maps'];

  constructor({ roots, slots, maps }: CellSources, model: RouteModel) {
    this.#maps = maps;
    for (const { effects } of roots.values()) this.#addEffects(effects, undefined);
    for (const { collection, results } of slots.values()) {
      const name = COLLECTIONS.find((one) => model[one] === collection);
      for (const [key, result] of results.entries()) {
        this.#add(result, name === undefined ? undefined : { collection: name, key });
      }
    }
  }

  /** Whose text a leaf is. */
  ofLeaf(leaf: Chunk): LineMaker | undefined {
    return this.#printed.get(leaf);
  }

  /** Who declares a line of a map or of a certificate list; undefined when the file is not made of declared lines. */
  ofLine(path: string, text: string): Made | undefined {
    const lines = this.#lines.get(path);
    return lines === undefined ? undefined : madeBy(lines.get(text) ?? []);
  }

  /** Who declares a file as a whole, if anybody does. */
  ofFile(path: string): Made | undefined {
    const claims = this.#files.get(path);
    return claims === undefined ? undefined : madeBy(claims);
  }

  #add({ object, chunk, effects }: CellResult, element: RouteElement | undefined): void {
    const isKnown = object !== undefined || element !== undefined;
    const maker = isKnown ? { object, element } : undefined;
    this.#addEffects(effects, maker);
    if (maker === undefined) return;
    if (chunk.size > 0) this.#printed.set(chunk, maker);
    for (const { text } of effects.backends) this.#printed.set(text, maker);
  }

  #addEffects(effects: Effects, maker: LineMaker | undefined): void {
    for (const { map, key, value, place } of effects.mapEntries) {
      const path = this.#maps.get(map)?.file?.path;
      if (path !== undefined) this.#addLine(path, `${key} ${value}`, { maker, place });
    }
    for (const { list, line, place } of effects.certificateLines) {
      this.#addLine(list, line, { maker, place });
    }
    for (const { path, place } of effects.files) append(this.#files, path, { maker, place });
  }

  #addLine(path: string, text: string, claim: Claim): void {
    const lines = this.#lines.get(path) ?? new Map<string, Claim[]>();
    this.#lines.set(path, lines);
    append(lines, text, claim);
  }
}

const append = (claims: Map<string, Claim[]>, key: string, claim: Claim): void => {
  const known = claims.get(key);
  if (known === undefined) claims.set(key, [claim]);
  else known.push(claim);
};

const madeBy = (claims: readonly Claim[]): Made => {
  const places = claims.map(({ place }) => place).filter((place) => place !== undefined);
  return {
    printedBy: places.slice(0, 1).map(({ source, line }) => ({ template: source, line })),
    makers: claims.map(({ maker }) => maker).filter((maker) => maker !== undefined),
  };
};
