import type { BackendOperation, Operation } from '../protocol/protocol.ts';
import { backendRecord } from './build.ts';
import type { RuntimeState } from './change-set.ts';
import { OperationError } from './operation-error.ts';
import type { Backend, DigestFunction, Server } from './plan.ts';

type ServerOperation = Extract<Operation, { readonly server: string }>;

interface OpenBackend {
  readonly backend: Backend;
  readonly servers: Map<string, Server>;
}

/** Backends of a state, changed operation by operation. Lives inside one {@link applyOperations}. */
export class BackendEdits {
  readonly #state: RuntimeState;
  readonly #digest: DigestFunction;
  /** Undefined: deleted. */
  readonly #open = new Map<string, OpenBackend | undefined>();

  constructor(state: RuntimeState, digest: DigestFunction) {
    this.#state = state;
    this.#digest = digest;
  }

  /** @throws OperationError */
  apply(operation: ServerOperation | BackendOperation): void {
    const name = operation.backend;
    const open = this.#find(name);
    if (operation.kind === 'backend_add') {
      if (open !== undefined) throw new OperationError(operation, `${name} is there already`);
      this.#open.set(name, { backend: this.#made(operation), servers: new Map() });
      return;
    }
    if (open === undefined) throw new OperationError(operation, `no backend ${name}`);
    if ('server' in operation) changeServers(open, operation);
    if (operation.kind !== 'backend_remove') return;
    if (open.servers.size > 0) throw new OperationError(operation, `${name} still has servers`);
    this.#open.set(name, undefined);
  }

  result(): RuntimeState['backends'] {
    const changes = Array.from(this.#open, ([name, open]) => {
      if (open === undefined) return [name, undefined] as const;
      const servers = [...open.servers.values()];
      return [name, backendRecord({ ...open.backend, servers }, this.#digest)] as const;
    });
    return this.#state.backends.with(new Map(changes));
  }

  #find(name: string): OpenBackend | undefined {
    if (this.#open.has(name)) return this.#open.get(name);
    const backend = this.#state.backends.get(name);
    if (backend === undefined) return undefined;
    const servers = new Map(backend.servers.map((server) => [server.name, server]));
    const open = { backend, servers };
    this.#open.set(name, open);
    return open;
  }

  /** It takes everything from its profile. */
  #made(operation: Extract<Operation, { kind: 'backend_add' }>): Backend {
    const { backend: name, profile, mode, structure } = operation;
    const loaded = this.#state.profiles.get(profile);
    if (loaded === undefined) throw new OperationError(operation, `no profile ${profile}`);
    const { balance = '', hashType } = loaded;
    const record = { name, profile, mode, balance, structure, servers: [] };
    return backendRecord(
      {
        ...record,
        ...(hashType === undefined ? {} : { hashType }),
        ...{ text: structure, bare: true, dynamic: true },
      },
      this.#digest,
    );
  }
}

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
    case 'server_maxconn':
      return { ...server, keywords: withLimit(server.keywords, operation) };
  }
}

function withLimit(
  keywords: readonly string[],
  operation: Extract<Operation, { kind: 'server_maxconn' }>,
): readonly string[] {
  const at = keywords.indexOf('maxconn');
  if (at < 0) throw new OperationError(operation, `${operation.server} has no maxconn`);
  return keywords.with(at + 1, String(operation.maxconn));
}
