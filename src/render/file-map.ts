import { OrderedBlocks } from '../cells/ordered-blocks.ts';
import { PersistentMap } from '../cells/persistent-map.ts';
import type { RenderedFile } from './render.ts';

type Sorted = OrderedBlocks<RenderedFile, readonly RenderedFile[]>;

/** Immutable files by path, in the order of their paths (code units). A change copies nothing that grows with their number. */
export class FileMap implements ReadonlyMap<string, RenderedFile> {
  static readonly EMPTY = new FileMap(
    PersistentMap.EMPTY,
    OrderedBlocks.empty((files) => files),
  );

  readonly #files: PersistentMap<RenderedFile>;
  readonly #sorted: Sorted;

  private constructor(files: PersistentMap<RenderedFile>, sorted: Sorted) {
    this.#files = files;
    this.#sorted = sorted;
  }

  /** With these paths set (file) or removed (undefined). */
  with(changes: ReadonlyMap<string, RenderedFile | undefined>): FileMap {
    return changes.size === 0
      ? this
      : new FileMap(this.#files.with(changes), this.#sorted.with(changes));
  }

  get size(): number {
    return this.#files.size;
  }

  get(path: string): RenderedFile | undefined {
    return this.#files.get(path);
  }

  has(path: string): boolean {
    return this.#files.has(path);
  }

  *values(): Generator<RenderedFile, undefined> {
    for (const files of this.#sorted.summaries) yield* files;
  }

  *keys(): Generator<string, undefined> {
    for (const { path } of this.values()) yield path;
  }

  *entries(): Generator<[string, RenderedFile], undefined> {
    for (const file of this.values()) yield [file.path, file];
  }

  [Symbol.iterator](): Generator<[string, RenderedFile], undefined> {
    return this.entries();
  }

  forEach(
    visit: (file: RenderedFile, path: string, files: ReadonlyMap<string, RenderedFile>) => void,
  ): void {
    for (const file of this.values()) visit(file, file.path, this);
  }
}
