import { byCodeUnits } from '../cells/persistent-map.ts';
import { byNamespaceAndName } from '../snapshot/object-list.ts';
import { type KubeObject, objectRef } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import { resourceOfKind } from './directory-kinds.ts';
import type { ManifestEntry } from './manifest-file.ts';

/** One object that came, went or changed. */
export interface Transition {
  readonly before: KubeObject | undefined;
  readonly after: KubeObject | undefined;
}

/** A kind as objects name it, and as watches do. */
export interface ManifestKind {
  readonly apiVersion: string;
  readonly kind: string;
  /** Lower-case plural. */
  readonly resource: string;
  readonly objects: ReadonlyMap<string, Claim>;
}

/** An object and the place that says so. */
export interface Claim extends ManifestEntry {
  readonly file: string;
}

/**
 * All objects of a directory. Where several places hold the same object, the first one by file name and position wins,
 * whatever the order in which they were read.
 */
export class ManifestCatalogue {
  /** All claims of each identity, the winner first. */
  readonly #claims = new Map<string, readonly Claim[]>();
  readonly #contested = new Set<string>();
  readonly #files = new Map<string, readonly ManifestEntry[]>();
  /** Winners by `apiVersion kind`. */
  readonly #kinds = new Map<string, ManifestKind & { readonly objects: Map<string, Claim> }>();

  /** Takes what a file holds now (nothing, when it is gone) and tells which objects changed. */
  replaceFile(file: string, entries: readonly ManifestEntry[]): readonly Transition[] {
    const old = this.#files.get(file) ?? [];
    if (entries.length === 0) this.#files.delete(file);
    else this.#files.set(file, entries);
    const now = byIdentity(entries);
    const transitions: Transition[] = [];
    for (const identity of new Set([...old, ...entries].map((entry) => entry.identity))) {
      if (this.#isUntouched(identity, now.get(identity))) continue;
      const transition = this.#claim(file, identity, now.get(identity) ?? []);
      if (transition !== undefined) transitions.push(transition);
    }
    return transitions;
  }

  /** The objects of one resource in any of some versions, in order of namespace and name. */
  objects(apiVersions: readonly string[], resource: string): readonly KubeObject[] {
    return [...this.#kinds.values()]
      .filter((kind) => kind.resource === resource && apiVersions.includes(kind.apiVersion))
      .flatMap((kind) => [...kind.objects.values()].map(({ object }) => object))
      .sort(byNamespaceAndName);
  }

  /** The kinds that have objects, in order of version and name. */
  kinds(): readonly ManifestKind[] {
    return [...this.#kinds]
      .filter(([, kind]) => kind.objects.size > 0)
      .sort(([left], [right]) => byCodeUnits(left, right))
      .map(([, kind]) => kind);
  }

  /** One problem for each place whose object another place holds too. */
  duplicates(): readonly Problem[] {
    return [...this.#contested].sort(byCodeUnits).flatMap((identity) => {
      const [winner, ...losers] = this.#claims.get(identity) ?? [];
      return winner === undefined ? [] : losers.map((loser) => duplicate(winner, loser));
    });
  }

  /** Most objects of an edited file are the very same as before; only their lines may be others. */
  #isUntouched(identity: string, entries: readonly ManifestEntry[] | undefined): boolean {
    const claims = this.#claims.get(identity);
    return (
      claims?.length === 1 && entries?.length === 1 && claims[0]?.object === entries[0]?.object
    );
  }

  #claim(
    file: string,
    identity: string,
    entries: readonly ManifestEntry[],
  ): Transition | undefined {
    const before = this.#claims.get(identity) ?? [];
    const claims = [
      ...before.filter((claim) => claim.file !== file),
      ...entries.map((entry) => ({ ...entry, file })),
    ].sort(byPlace);
    if (claims.length === 0) this.#claims.delete(identity);
    else this.#claims.set(identity, claims);
    if (claims.length > 1) this.#contested.add(identity);
    else this.#contested.delete(identity);
    return this.#win(before[0], claims[0]);
  }

  #win(before: Claim | undefined, after: Claim | undefined): Transition | undefined {
    if (before !== undefined) this.#kindOf(before.object).objects.delete(before.identity);
    if (after !== undefined) this.#kindOf(after.object).objects.set(after.identity, after);
    return before !== undefined && after !== undefined && isSame(before.object, after.object)
      ? undefined
      : { before: before?.object, after: after?.object };
  }

  #kindOf({ apiVersion, kind }: KubeObject): ManifestKind & { objects: Map<string, Claim> } {
    const key = `${apiVersion} ${kind}`;
    const known = this.#kinds.get(key);
    if (known !== undefined) return known;
    const added = { apiVersion, kind, resource: resourceOfKind(kind), objects: new Map() };
    this.#kinds.set(key, added);
    return added;
  }
}

/** The resourceVersion of an object from a file is a digest of its content. */
const isSame = (left: KubeObject, right: KubeObject): boolean =>
  left === right || left.metadata.resourceVersion === right.metadata.resourceVersion;

const byIdentity = (
  entries: readonly ManifestEntry[],
): ReadonlyMap<string, readonly ManifestEntry[]> => {
  const groups = new Map<string, ManifestEntry[]>();
  for (const entry of entries) {
    const group = groups.get(entry.identity);
    if (group === undefined) groups.set(entry.identity, [entry]);
    else group.push(entry);
  }
  return groups;
};

const byPlace = (left: Claim, right: Claim): number =>
  byCodeUnits(left.file, right.file) || left.line - right.line;

const duplicate = (winner: Claim, loser: Claim): Problem => {
  const { kind, metadata } = loser.object;
  const name = `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;
  return {
    severity: 'warning',
    reason: 'DuplicateObject',
    message: `${name} in ${loser.file}, line ${loser.line}, is ignored: ${winner.file}, line ${winner.line}, holds it too.`,
    nextStep: 'Remove one of them; the first by file name and line is in use.',
    object: objectRef(loser.object),
    place: { source: loser.file, line: loser.line },
  };
};
