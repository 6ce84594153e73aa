import type { Operation } from '../../src/protocol/protocol.ts';
import type { EntryOperation, ServerOperation } from './commands.ts';

/** A stretch of operations that go to the worker in the same way, together. */
export type Lane = { readonly first: Operation } & (
  | { readonly kind: 'servers'; readonly operations: ServerOperation[] }
  | { readonly kind: 'readd'; readonly operation: ServerOperation }
  | { readonly kind: 'entries'; readonly operations: EntryOperation[] }
  | {
      readonly kind: 'deletions';
      readonly operations: Extract<Operation, { kind: 'map_delete' }>[];
    }
  | {
      readonly kind: 'replacement';
      readonly operation: Extract<Operation, { kind: 'map_replace' }>;
    }
);

/**
 * Cuts a list of operations into lanes without changing their order.
 *
 * @param isLeaving whether a `backend/server` waits for its deletion
 */
export function lanesOf(
  operations: readonly Operation[],
  isLeaving: (name: string) => boolean,
): Lane[] {
  const lanes: Lane[] = [];
  const removed = new Set<string>();
  const addressed = new Set<string>();
  for (const operation of operations) {
    if (!('server' in operation)) {
      append(lanes, laneOf(operation));
      continue;
    }
    const name = `${operation.backend}/${operation.server}`;
    if (operation.kind === 'server_remove') removed.add(name);
    if (operation.kind === 'server_add' && (removed.delete(name) || isLeaving(name))) {
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

function append(lanes: Lane[], lane: Lane): void {
  if (!joined(lanes.at(-1), lane)) lanes.push(lane);
}

function laneOf(operation: Operation): Lane {
  const first = operation;
  switch (operation.kind) {
    case 'map_add':
    case 'map_set':
      return { kind: 'entries', operations: [operation], first };
    case 'map_delete':
      return { kind: 'deletions', operations: [operation], first };
    case 'map_replace':
      return { kind: 'replacement', operation, first };
    default:
      return { kind: 'servers', operations: [operation], first };
  }
}

/** Appends the operations of `next` to `last` when they go the same way. */
function joined(last: Lane | undefined, next: Lane): boolean {
  if (last?.kind === 'servers' && next.kind === 'servers') last.operations.push(...next.operations);
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
