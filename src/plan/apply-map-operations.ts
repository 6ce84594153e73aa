import type { Operation } from '../protocol/protocol.ts';
import { mapEntries, mapEntry, planMap } from './build.ts';
import type { RuntimeState } from './change-set.ts';
import type { MerkleMap } from './merkle-map.ts';
import { OperationError } from './operation-error.ts';
import type { DigestFunction, MapEntry, PlanMap } from './plan.ts';

type MapOperation = Extract<Operation, { readonly map: string }>;

interface OpenMap {
  readonly map: PlanMap;
  /** Since `base`; undefined = deleted. */
  changes: Map<string, MapEntry | undefined>;
  readonly base: MerkleMap<MapEntry>;
}

/** Maps of a state, changed operation by operation. Lives inside one {@link applyOperations}. */
export class MapEdits {
  readonly #state: RuntimeState;
  readonly #digest: DigestFunction;
  readonly #open = new Map<string, OpenMap>();

  constructor(state: RuntimeState, digest: DigestFunction) {
    this.#state = state;
    this.#digest = digest;
  }

  /** @throws OperationError */
  apply(operation: MapOperation): void {
    const open = this.#find(operation);
    if (operation.kind === 'map_replace') this.#replace(open, operation);
    else this.#change(open, operation);
  }

  result(): RuntimeState['maps'] {
    const changes = Array.from(this.#open, ([path, { map, base, changes: entries }]) => {
      return [path, planMap({ ...map, entries: base.with(entries) }, this.#digest)] as const;
    });
    return this.#state.maps.with(new Map(changes));
  }

  #find(operation: MapOperation): OpenMap {
    const path = operation.map;
    const known = this.#open.get(path);
    if (known !== undefined) return known;
    const map = this.#state.maps.get(path);
    if (map === undefined) throw new OperationError(operation, `no map ${path}`);
    const open = { map, base: map.entries, changes: new Map<string, MapEntry | undefined>() };
    this.#open.set(path, open);
    return open;
  }

  #replace(open: OpenMap, operation: Extract<MapOperation, { kind: 'map_replace' }>): void {
    const options = { ordered: open.map.ordered, digest: this.#digest };
    const entries = mapEntries(operation.entries, options);
    // Changes of the old entries, rather than the new map itself, so that what stays keeps its identity.
    const gone = open.base.keys().filter((key) => entries.get(key) === undefined);
    open.changes = new Map<string, MapEntry | undefined>(gone.map((key) => [key, undefined]));
    for (const key of entries.keys()) open.changes.set(key, entries.get(key));
  }

  #change(open: OpenMap, operation: Exclude<MapOperation, { kind: 'map_replace' }>): void {
    if (open.map.ordered)
      throw new OperationError(operation, `${operation.map} changes as a whole`);
    const { key, kind } = operation;
    const present =
      (open.changes.has(key) ? open.changes.get(key) : open.base.get(key)) !== undefined;
    if (present === (kind === 'map_add')) {
      const what = present ? 'is there already' : 'is not there';
      throw new OperationError(operation, `key ${JSON.stringify(key)} of ${operation.map} ${what}`);
    }
    const entry = kind === 'map_delete' ? undefined : mapEntry(key, operation.value, this.#digest);
    open.changes.set(key, entry);
  }
}
