import { SocketAddress, isIPv6 } from 'node:net';
import type { Operation, ServerState } from '../../src/protocol/protocol.ts';

/** What operations can set of a server. `''` and `-1` stand for what changes by itself and is not compared. */
export interface ServerRow {
  readonly name: string;
  /** As HAProxy prints it; `''`: a resolver sets it. */
  readonly address: string;
  readonly port: number;
  /** -1: an agent-check sets weight and state. */
  readonly weight: number;
  readonly state: ServerState;
}

/**
 * A line of `show servers state`, and the columns of it that are of use: name, address, administrative state, weight,
 * agent-check, name to resolve, port. The others change all the time.
 */
const LINE = /^\S+ \S+ \S+ (\S+ \S+) \S+ (\S+ \S+) (?:\S+ ){6}(\S+) \S+ \S+ (\S+ \S+).*$/gm;
/** Bits of the administrative state that an operator sets. */
const MAINTENANCE = 1;
const DRAIN = 8;
const AGENT_CONFIGURED = 1;
const ADMIN: Readonly<Record<ServerState, number>> = { ready: 0, maint: MAINTENANCE, drain: DRAIN };

/**
 * What of the answer to `show servers state <backend>` is of use, a line for each server. One replacement for all of them:
 * fifty thousand lines a minute are not worth an object each.
 *
 * @returns `undefined` when it is something else, for example because there is no such backend
 */
export function compactRows(text: string): string | undefined {
  if (!text.startsWith('1\n# be_id')) return undefined;
  const from = text.indexOf('\n', 2);
  return from < 0 ? '' : text.slice(from + 1).replace(LINE, '$1 $2 $3 $4');
}

/** Reads what {@link compactRows} or {@link printRows} made. */
export const parseRows = (compact: string): ServerRow[] =>
  compact === '' ? [] : compact.split('\n').map(parseRow);

function parseRow(line: string): ServerRow {
  const [name = '', address = '', admin, weight, agent, fqdn, port] = line.split(' ');
  const hasAgent = (Number(agent) & AGENT_CONFIGURED) !== 0;
  const resolved = fqdn !== '-';
  return {
    name,
    address: resolved ? '' : address,
    port: resolved ? 0 : Number(port),
    weight: hasAgent ? -1 : Number(weight),
    state: hasAgent ? 'ready' : stateOf(Number(admin)),
  };
}

/** The opposite of {@link parseRows}. */
export const printRows = (rows: Iterable<ServerRow>): string =>
  Array.from(rows, ({ name, address, port, weight, state }) => {
    const [agent, fqdn] = [weight < 0 ? AGENT_CONFIGURED : 0, address === '' ? '?' : '-'];
    return `${name} ${address === '' ? '?' : address} ${ADMIN[state]} ${weight} ${agent} ${fqdn} ${port}`;
  }).join('\n');

function stateOf(admin: number): ServerState {
  if ((admin & MAINTENANCE) !== 0) return 'maint';
  return (admin & DRAIN) === 0 ? 'ready' : 'drain';
}

type ServerOperation = Extract<Operation, { readonly server: string }>;

/** What a server is after an operation on it; `undefined`: gone. */
export function rowAfter(
  before: ServerRow | undefined,
  operation: ServerOperation,
): ServerRow | undefined {
  if (operation.kind === 'server_add') return addedRow(operation);
  if (before === undefined || operation.kind === 'server_remove') return undefined;
  if (operation.kind === 'server_address') {
    return { ...before, address: canonical(operation.address), port: operation.port };
  }
  if (before.weight < 0) return before;
  switch (operation.kind) {
    case 'server_weight':
      return { ...before, weight: operation.weight };
    case 'server_state':
      return { ...before, state: operation.state };
    case 'server_maxconn':
      return before; // not in what the worker tells
  }
}

function addedRow(operation: Extract<Operation, { readonly kind: 'server_add' }>): ServerRow {
  const { server: name, address, port, weight, state, keywords } = operation;
  const own = { name, address: canonical(address), port };
  return keywords.includes('agent-check')
    ? { ...own, weight: -1, state: 'ready' }
    : { ...own, weight, state };
}

const canonical = (address: string): string =>
  isIPv6(address) ? new SocketAddress({ address, family: 'ipv6' }).address : address;

/** How a server becomes again what it was; `undefined`: no operation can do that. */
export function serverRepairs(
  backend: string,
  wanted: ServerRow | undefined,
  real: ServerRow | undefined,
): readonly Operation[] | undefined {
  if (wanted === undefined) {
    return real === undefined ? [] : [{ kind: 'server_remove', backend, server: real.name }];
  }
  if (real === undefined) return undefined; // its keywords stand in no answer of the worker
  const of = { backend, server: wanted.name };
  const repairs: Operation[] = [];
  if (wanted.address !== real.address || wanted.port !== real.port) {
    repairs.push({ kind: 'server_address', ...of, address: wanted.address, port: wanted.port });
  }
  if (wanted.weight !== real.weight) {
    repairs.push({ kind: 'server_weight', ...of, weight: wanted.weight });
  }
  if (wanted.state !== real.state) {
    repairs.push({ kind: 'server_state', ...of, state: wanted.state });
  }
  return repairs;
}
