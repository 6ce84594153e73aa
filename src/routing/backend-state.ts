import type { PersistentMap } from '../cells/persistent-map.ts';
import { ClaimTable, recomputed, type ClaimChange } from './claim-table.ts';
import { problemOf } from './complaint.ts';
import type { BackendClaim } from './contribution.ts';
import type { BackendModel } from './model.ts';
import type { ProblemIndex } from './problem-index.ts';
import { serviceBackend, type BackendSources } from './service-backend.ts';

const place = (namespace: string, name: string): string => `${namespace}/${name}`;

/** Backends as all contributions together ask for them. */
export class BackendState {
  readonly #claims = new ClaimTable<BackendClaim>();
  /** `namespace/name` of a Service → backends made of it. */
  readonly #backendsOf = new Map<string, Set<string>>();
  readonly #problems: ProblemIndex;

  constructor(problems: ProblemIndex) {
    this.#problems = problems;
  }

  replace(change: ClaimChange<BackendClaim>): void {
    this.#claims.replace(change);
  }

  /** A Service or one of its EndpointSlices changed. */
  touchService(namespace: string, name: string): void {
    for (const backend of this.#backendsOf.get(place(namespace, name)) ?? []) {
      this.#claims.touch(backend);
    }
  }

  *update(
    backends: PersistentMap<BackendModel>,
    sources: BackendSources,
  ): Generator<void, PersistentMap<BackendModel>> {
    return yield* recomputed(backends, this.#claims.takeTouched(), (name) => {
      const claims = this.#claims.of(name);
      const [first] = claims;
      if (first === undefined) {
        this.#forget(name, backends.get(name));
        return undefined;
      }
      const { namespace, service } = first.reference;
      const others = this.#backendsOf.get(place(namespace, service)) ?? new Set<string>();
      this.#backendsOf.set(place(namespace, service), others.add(name));
      return this.#compute(name, claims, serviceBackend(first.reference, sources));
    });
  }

  #compute(
    name: string,
    claims: readonly BackendClaim[],
    { model, complaints }: ReturnType<typeof serviceBackend>,
  ): BackendModel {
    const problems = claims.flatMap(({ owner, fields }) =>
      complaints.flatMap((complaint) =>
        fields.map((field) =>
          problemOf(owner.object, { ...complaint, field: `${field}.${complaint.field}` }),
        ),
      ),
    );
    this.#problems.replace(`backend ${name}`, problems);
    return model;
  }

  #forget(name: string, record: BackendModel | undefined): void {
    this.#problems.replace(`backend ${name}`, []);
    if (record === undefined) return;
    const service = place(record.object.namespace, record.object.name);
    const backends = this.#backendsOf.get(service);
    backends?.delete(name);
    if (backends?.size === 0) this.#backendsOf.delete(service);
  }
}
