import type { CellIndex } from '../cells/cells.ts';
import { PersistentMap } from '../cells/persistent-map.ts';
import type { NamedSecret } from '../routing/model.ts';
import { certificateName } from '../routing/read-tls.ts';
import { type Need, needKey, type Needs } from '../snapshot/content.ts';
import type { WatchedResource } from '../snapshot/watch.ts';
import type { SnapshotWorld } from './world.ts';

const SECRETS = 'secrets';

/** What all cells and routes of one configuration need of on-demand resources, kept up at the cost of what changes. */
export class RenderNeeds {
  /** Whether a read of a cell is a need; undefined when nothing is on demand. */
  readonly follows: ((read: string) => boolean) | undefined;
  readonly #routesNeed: boolean;
  #secrets: PersistentMap<NamedSecret> = PersistentMap.EMPTY;
  #needs: Needs = PersistentMap.EMPTY;

  constructor(watched: readonly WatchedResource[]) {
    const names = watched.filter(({ store }) => store === 'on-demand').map(({ name }) => name);
    const prefixes = names.map((name) => `["get",${JSON.stringify(name)},`);
    this.follows =
      names.length === 0 ? undefined : (read) => prefixes.some((prefix) => read.startsWith(prefix));
    this.#routesNeed = names.includes(SECRETS);
  }

  /** The needs now, or undefined when nothing is on demand. */
  of(index: CellIndex, { model }: SnapshotWorld): Needs | undefined {
    if (this.follows === undefined) return undefined;
    const moved = index.takeMoved();
    if (this.#routesNeed) {
      for (const key of this.#movedSecrets(model.secrets)) moved.add(key);
    }
    if (moved.size === 0) return this.#needs;
    const changes = new Map<string, Need | undefined>();
    for (const key of moved) changes.set(key, this.#need(key, index));
    this.#needs = this.#needs.with(changes);
    return this.#needs;
  }

  *#movedSecrets(secrets: PersistentMap<NamedSecret>): Generator<string> {
    for (const { before, after } of secrets.differences(this.#secrets)) {
      const secret = after ?? before;
      if (secret !== undefined) yield needKey(SECRETS, secret.namespace, secret.secret);
    }
    this.#secrets = secrets;
  }

  #need(key: string, index: CellIndex): Need | undefined {
    const [, resource = '', namespace = '', name = ''] = JSON.parse(key) as string[];
    const isNamed = resource === SECRETS && this.#secrets.has(certificateName(namespace, name));
    if (!isNamed && !index.has(key)) return undefined;
    return this.#needs.get(key) ?? { resource, key: `${namespace}/${name}` };
  }
}
