import type { Operation } from '../protocol/protocol.ts';
import { mapEntry, mapEntries, planMap, backendRecord } from './build.ts';
import type { RuntimeState } from './change-set.ts';
import type { MerkleMap } from './merkle-map.ts';
import type { Backend, DigestFunction, MapEntry, PlanMap, Server } from './plan.ts';

/** An operation that the state does not allow: the baseline is not what it was thought to be. */
export class OperationError extends Error {
  readonly code = 'operation-impossible';
  readonly operation: Operation;
  constructor(operation: Operation, message: string) {
    super(`${operation.kind}: ${message}`);
    this.name = 'OperationError';
    this.operation = operation;
  }
}

type ServerOperation = Extract<Operation, { readonly backend: string }>;
type MapOperation = Extract<Operation, { readonly map: string }>;

/**
 * What a worker holds after these operations, all of them executed. Texts of backends and maps stay those of `state`:
 * they are the files' business. Costs what the operations touch.
 *
 * @throws OperationError for an operation that a worker in this state would refuse
 */
export function applyOperations(
  state: RuntimeState,
  operations: readonly Operation[],
  digest: DigestFunction,
): RuntimeState {
  const backends = new Map<string, OpenBackend>();
  const maps = new Map<string, OpenMap>();
  for (const operation of operations) {
    if ('backend' in operation) changeServers(openBackend(state, backends, operation), operation);
    else changeMap(openMap(state, maps, operation), operation, digest);
  }
  return {
    profiles: state.profiles,
    backends: state.backends.with(mapValues(backends, (open) => closeBackend(open, digest))),
    maps: state.maps.with(mapValues(maps, (open) => closeMap(open, digest))),
  };
}

const mapValues = <A, B>(map: ReadonlyMap<string, A>, change: (value: A) => B): Map<string, B> =>
  new Map(Array.from(map, ([key, value]) => [key, change(value)]));

interface OpenBackend {
  readonly backend: Backend;
  readonly servers: Map<string, Server>;
}

function openBackend(
  state: RuntimeState,
  open: Map<string, OpenBackend>,
  operation: ServerOperation,
): OpenBackend {
  const known = open.get(operation.backend);
  if (known !== undefined) return known;
  const backend = state.backends.get(operation.backend);
  if (backend === undefined) throw new OperationError(operation, `no backend ${operation.backend}`);
  const servers = new Map(backend.servers.map((server) => [server.name, server]));
  open.set(operation.backend, { backend, servers });
  return { backend, servers };
}

const closeBackend = ({ backend, servers }: OpenBackend, digest: DigestFunction): Backend =>
  backendRecord({ ...backend, servers: [...servers.values()] }, digest);

function changeServers({ backend, servers }: OpenBackend, operation: ServerOperation): void {
  const name = operation.server;
  const server = servers.get(name);
  const place = `${operation.backend}/${name}`;
  if (operation.kind === 'server_add') {
    if (server !== undefined) throw new OperationError(operation, `${place} is there already`);
    if (!backend.dynamic) throw new OperationError(operation, `${backend.name} is not dynamic`);
    const { address, port, weight, state, keywords } = operation;
    servers.set(name, { name, address, port, weight, state, keywords });
    return;
  }
  if (server === undefined) throw new OperationError(operation, `no server ${place}`);
  if (operation.kind === 'server_remove') {
    if (!backend.dynamic) throw new OperationError(operation, `${backend.name} is not dynamic`);
    servers.delete(name);
  } else servers.set(name, updated(server, operation));
  if (operation.kind === 'server_weight' && server.state === 'drain' && operation.weight > 0) {
    throw new OperationError(operation, `${place} drains, so it has no weight`);
  }
}

function updated(
  server: Server,
  operation: Exclude<ServerOperation, { readonly kind: 'server_add' | 'server_remove' }>,
): Server {
  switch (operation.kind) {
    case 'server_address':
      return { ...server, address: operation.address, port: operation.port };
    case 'server_weight':
      return { ...server, weight: operation.weight };
    case 'server_state':
      return { ...server, state: operation.state };
  }
}

interface OpenMap {
  readonly map: PlanMap;
  /** Since `base`; undefined = deleted. */
  changes: Map<string, MapEntry | undefined>;
  base: MerkleMap<MapEntry>;
}

function openMap(
  state: RuntimeState,
  open: Map<string, OpenMap>,
  operation: MapOperation,
): OpenMap {
  const known = open.get(operation.map);
  if (known !== undefined) return known;
  const map = state.maps.get(operation.map);
  if (map === undefined) throw new OperationError(operation, `no map ${operation.map}`);
  const opened = { map, base: map.entries, changes: new Map<string, MapEntry | undefined>() };
  open.set(operation.map, opened);
  return opened;
}

function closeMap({ map, base, changes }: OpenMap, digest: DigestFunction): PlanMap {
  return planMap({ ...map, entries: base.with(changes) }, digest);
}

function changeMap(open: OpenMap, operation: MapOperation, digest: DigestFunction): void {
  if (operation.kind === 'map_replace') {
    const entries = mapEntries(operation.entries, { ordered: open.map.ordered, digest });
    // Changes of the old entries, rather than the new map itself, so that what stays keeps its identity.
    const gone = open.base.keys().filter((key) => entries.get(key) === undefined);
    open.changes = new Map<string, MapEntry | undefined>(gone.map((key) => [key, undefined]));
    for (const key of entries.keys()) open.changes.set(key, entries.get(key));
    return;
  }
  if (open.map.ordered) throw new OperationError(operation, `${operation.map} changes as a whole`);
  const { key, kind } = operation;
  const present =
    (open.changes.has(key) ? open.changes.get(key) : open.base.get(key)) !== undefined;
  if (present === (kind === 'map_add')) {
    const what = present ? 'is there already' : 'is not there';
    throw new OperationError(operation, `key ${JSON.stringify(key)} of ${operation.map} ${what}`);
  }
  open.changes.set(key, kind === 'map_delete' ? undefined : mapEntry(key, operation.value, digest));
}
