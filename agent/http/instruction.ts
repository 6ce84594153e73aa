import {
  OPERATION_KINDS,
  type Operation,
  type OperationKind,
  type ServerState,
} from '../../src/protocol/protocol.ts';
import { BadRequest } from '../failures.ts';
import { shape, type JsonObject } from './json-shape.ts';
import { refusalOf } from '../haproxy/tokens.ts';

/** An operation as it came: executable, or refused for a reason, which ends in a reload of the desired files. */
export type Instruction =
  | { readonly ok: true; readonly operation: Operation }
  | {
      readonly ok: false;
      readonly kind: string;
      readonly target: string;
      readonly reason: string;
    };

const STATES: readonly ServerState[] = ['ready', 'drain', 'maint'];

/**
 * Reads one untrusted operation. An unknown kind or a value that HAProxy's command line cannot take is a refused
 * instruction.
 *
 * @throws BadRequest when a member has the wrong type
 */
export function readOperation(value: unknown, name: string): Instruction {
  const json = shape.object(value, name);
  const kind = shape.text(json['kind'], `kind in ${name}`);
  const known = OPERATION_KINDS.find((candidate) => candidate === kind);
  if (known === undefined) {
    return { ok: false, kind: kind.slice(0, 64), target: '', reason: 'unknown operation' };
  }
  const operation = READERS[known](json);
  const reason = refusalOf(operation);
  if (reason === undefined) return { ok: true, operation };
  return { ok: false, kind, target: targetOf(operation), reason };
}

/** What an operation is about, for people: `backend/server` or the map. */
export function targetOf(operation: Operation): string {
  const target = 'map' in operation ? operation.map : `${operation.backend}/${operation.server}`;
  return target.slice(0, 300);
}

const serverOf = (json: JsonObject): { backend: string; server: string } => ({
  backend: shape.text(json['backend'], 'backend'),
  server: shape.text(json['server'], 'server'),
});
const addressOf = (json: JsonObject): { address: string; port: number } => ({
  address: shape.text(json['address'], 'address'),
  port: shape.count(json['port'], 'port'),
});
const entryOf = (json: JsonObject): { map: string; key: string; value: string } => ({
  map: shape.text(json['map'], 'map'),
  key: shape.text(json['key'], 'key'),
  value: shape.text(json['value'], 'value'),
});

const READERS: Readonly<Record<OperationKind, (json: JsonObject) => Operation>> = {
  server_add: (json) => ({
    kind: 'server_add',
    ...serverOf(json),
    ...addressOf(json),
    weight: shape.count(json['weight'], 'weight'),
    state: shape.oneOf(json['state'], 'state', STATES),
    keywords: shape
      .list(json['keywords'], 'keywords', 48)
      .map((word) => shape.text(word, 'keyword')),
  }),
  server_remove: (json) => ({ kind: 'server_remove', ...serverOf(json) }),
  server_address: (json) => ({ kind: 'server_address', ...serverOf(json), ...addressOf(json) }),
  server_weight: (json) => ({
    kind: 'server_weight',
    ...serverOf(json),
    weight: shape.count(json['weight'], 'weight'),
  }),
  server_state: (json) => ({
    kind: 'server_state',
    ...serverOf(json),
    state: shape.oneOf(json['state'], 'state', STATES),
  }),
  map_add: (json) => ({ kind: 'map_add', ...entryOf(json) }),
  map_set: (json) => ({ kind: 'map_set', ...entryOf(json) }),
  map_delete: (json) => ({
    kind: 'map_delete',
    map: shape.text(json['map'], 'map'),
    key: shape.text(json['key'], 'key'),
  }),
  map_replace: (json) => ({
    kind: 'map_replace',
    map: shape.text(json['map'], 'map'),
    entries: shape.list(json['entries'], 'entries', 1_000_000).map(pairOf),
  }),
};

function pairOf(value: unknown): readonly [string, string] {
  const [key, text, ...more] = shape.list(value, 'entry', 2);
  if (more.length > 0) throw new BadRequest('entry is not a pair');
  return [shape.text(key, 'key'), shape.text(text, 'value')];
}
