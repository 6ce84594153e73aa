import { listAt, textAt } from '../routing/fields.ts';
import type { KubeObject, ObjectKey } from '../snapshot/objects.ts';
import { FIELD_MANAGER, type Members } from './write-objects.ts';

/** Addresses as a value that is compared: one object for all Ingresses that have the same. */
export interface Addresses {
  readonly text: string;
  readonly entries: readonly Members[];
}

export const NO_ADDRESSES: Addresses = { text: '[]', entries: [] };

interface Known {
  readonly uid: string | undefined;
  readonly addresses: Addresses;
  /** Written by us, so ours to take away. */
  readonly ours: boolean;
}

/**
 * Which addresses each Ingress has at the API server. The snapshot does not hold statuses, so this is what was listed at
 * the begin of a term and written since: one small record for each Ingress, and one value for all equal addresses.
 */
export class KnownAddresses {
  readonly #byKey = new Map<ObjectKey, Known>();
  readonly #values = new Map<string, Addresses>([[NO_ADDRESSES.text, NO_ADDRESSES]]);

  /** The one value of these entries. */
  valueOf(entries: readonly Members[]): Addresses {
    const text = JSON.stringify(entries.map(inOrder));
    const known = this.#values.get(text);
    if (known !== undefined) return known;
    const value = { text, entries };
    this.#values.set(text, value);
    return value;
  }

  /** Takes in an Ingress as it is at the API server. */
  observe(ingress: KubeObject): void {
    const entries = listAt(ingress, 'status', 'loadBalancer', 'ingress') as readonly Members[];
    this.#byKey.set(keyOf(ingress), {
      uid: ingress.metadata.uid,
      addresses: this.valueOf(entries),
      ours: listAt(ingress, 'metadata', 'managedFields').some(
        (entry) =>
          textAt(entry, 'manager') === FIELD_MANAGER && textAt(entry, 'subresource') === 'status',
      ),
    });
  }

  /** Whether the Ingress has them; one that is not known, or is another of the same name, has none. */
  has(ingress: KubeObject, addresses: Addresses): boolean {
    const known = this.#byKey.get(keyOf(ingress));
    const its = known?.uid === ingress.metadata.uid ? known?.addresses : undefined;
    return (its ?? NO_ADDRESSES) === addresses;
  }

  written(ingress: KubeObject, addresses: Addresses): void {
    const { uid } = ingress.metadata;
    this.#byKey.set(keyOf(ingress), { uid, addresses, ours: addresses !== NO_ADDRESSES });
  }

  /** Keys of Ingresses that have addresses from us. */
  *ours(): Generator<ObjectKey> {
    for (const [key, known] of this.#byKey) if (known.ours) yield key;
  }

  forget(key: ObjectKey): void {
    this.#byKey.delete(key);
  }

  clear(): void {
    this.#byKey.clear();
  }
}

const keyOf = ({ metadata: { namespace = '', name } }: KubeObject): ObjectKey =>
  `${namespace}/${name}`;

/** Members in one order, whoever wrote them. */
const inOrder = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([left], [right]) => (left < right ? -1 : 1))
      .map(([name, member]) => [name, inOrder(member)]),
  );
};
