import type { CrtListOperation, Operation } from '../../src/protocol/protocol.ts';
import type { EntryOperation, ProxyOperation } from './commands.ts';
import { backendName } from './deletes.ts';
import type { TlsOperation } from './tls-commands.ts';

/** A stretch of operations that go to the worker in the same way, together. */
export type Lane = { readonly first: Operation } & (
  | { readonly kind: 'proxies'; readonly operations: ProxyOperation[] }
  | {
      readonly kind: 'readd';
      readonly operation: Extract<ProxyOperation, { kind: `${string}_add` }>;
    }
  | { readonly kind: 'entries'; readonly operations: EntryOperation[] }
  | {
      readonly kind: 'deletions';
      readonly operations: Extract<Operation, { kind: 'map_delete' }>[];
    }
  | {
      readonly kind: 'replacement';
      readonly operation: Extract<Operation, { kind: 'map_replace' }>;
    }
  | { readonly kind: 'tls'; readonly operation: TlsOperation | CrtListOperation }
);

/**
 * Cuts a list of operations into lanes without changing their order.
 *
 * @param isLeaving whether a server or a backend waits for its deletion, by its name in the queue
 */
export function lanesOf(
  operations: readonly Operation[],
  isLeaving: (name: string) => boolean,
): Lane[] {
  const lanes: Lane[] = [];
  const removed = new Set<string>();
  const addressed = new Set<string>();
  for (const operation of operations) {
    const name = nameOf(operation);
    if (isRemoval(operation)) removed.add(name);
    if (isAddition(operation) && (removed.delete(name) || isLeaving(name))) {
      lanes.push({ kind: 'readd', operation, first: operation });
    } else if (operation.kind === 'server_address' && addressed.has(name)) {
      // HAProxy changes addresses a moment later: a second change on the same line would be compared with the first.
      addressed.clear();
      addressed.add(name);
      lanes.push(laneOf(operation));
    } else {
      if (operation.kind === 'server_address') addressed.add(name);
      append(lanes, laneOf(operation));
    }
  }
  return lanes;
}

/** Name of its server or backend in the queue of deletions; empty for other operations. */
const nameOf = (operation: Operation): string => {
  if ('server' in operation) return `${operation.backend}/${operation.server}`;
  return 'backend' in operation ? backendName(operation.backend) : '';
};

const isRemoval = ({ kind }: Operation): boolean =>
  kind === 'server_remove' || kind === 'backend_remove';

const isAddition = (
  operation: Operation,
): operation is Extract<ProxyOperation, { kind: `${string}_add` }> =>
  operation.kind === 'server_add' || operation.kind === 'backend_add';

function append(lanes: Lane[], lane: Lane): void {
  if (!joined(lanes.at(-1), lane)) lanes.push(lane);
}

function laneOf(operation: Operation): Lane {
  const first = operation;
  if ('backend' in operation) return { kind: 'proxies', operations: [operation], first };
  if ('list' in operation || isTls(operation)) return { kind: 'tls', operation, first };
  switch (operation.kind) {
    case 'map_add':
    case 'map_set':
      return { kind: 'entries', operations: [operation], first };
    case 'map_delete':
      return { kind: 'deletions', operations: [operation], first };
    case 'map_replace':
      return { kind: 'replacement', operation, first };
  }
}

const isTls = (operation: Operation): operation is TlsOperation =>
  /^(?:cert|ca|crl)_/.test(operation.kind);

/** Appends the operations of `next` to `last` when they go the same way. */
function joined(last: Lane | undefined, next: Lane): boolean {
  if (last?.kind === 'proxies' && next.kind === 'proxies') last.operations.push(...next.operations);
  else if (last?.kind === 'entries' && next.kind === 'entries') return joinedEntries(last, next);
  else if (last?.kind === 'deletions' && next.kind === 'deletions')
    last.operations.push(...next.operations);
  else return false;
  return true;
}

type EntryLane = Extract<Lane, { kind: 'entries' }>;

/** What is added comes before what is set to point there, so the two are never mixed. */
function joinedEntries(last: EntryLane, next: EntryLane): boolean {
  if (last.first.kind !== next.first.kind) return false;
  last.operations.push(...next.operations);
  return true;
}
