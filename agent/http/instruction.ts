import {
  LIMITS,
  OPERATION_KINDS,
  type BackendOperation,
  type CrtListOperation,
  type Operation,
  type OperationKind,
  type ServerState,
  type TlsFileOperation,
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

/** What an operation is about, for people: `backend/server`, the backend, or the file. */
export function targetOf(operation: Operation): string {
  return wholeTarget(operation).slice(0, 300);
}

function wholeTarget(operation: Operation): string {
  if ('server' in operation) return `${operation.backend}/${operation.server}`;
  if ('backend' in operation) return operation.backend;
  if ('list' in operation) return `${operation.list}: ${operation.entry.certificate}`;
  return 'map' in operation ? operation.map : operation.file;
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
  server_maxconn: (json) => ({
    kind: 'server_maxconn',
    ...serverOf(json),
    maxconn: shape.count(json['maxconn'], 'maxconn'),
  }),
  backend_add: (json) => ({
    kind: 'backend_add',
    backend: shape.text(json['backend'], 'backend'),
    profile: shape.text(json['profile'], 'profile'),
    mode: shape.oneOf(json['mode'], 'mode', ['http', 'tcp'] as const),
    structure: shape.digest(json['structure'], 'structure'),
  }),
  backend_publish: backendReader('backend_publish'),
  backend_unpublish: backendReader('backend_unpublish'),
  backend_remove: backendReader('backend_remove'),
  cert_add: putReader('cert_add'),
  cert_set: putReader('cert_set'),
  cert_remove: removeReader('cert_remove'),
  ca_add: putReader('ca_add'),
  ca_set: putReader('ca_set'),
  ca_remove: removeReader('ca_remove'),
  crl_add: putReader('crl_add'),
  crl_set: putReader('crl_set'),
  crl_remove: removeReader('crl_remove'),
  crtlist_add: lineReader('crtlist_add'),
  crtlist_delete: lineReader('crtlist_delete'),
};

type Put = Extract<TlsFileOperation, { readonly digest: string }>;

function backendReader(kind: Exclude<BackendOperation['kind'], 'backend_add'>) {
  return (json: JsonObject): Operation => ({
    kind,
    backend: shape.text(json['backend'], 'backend'),
  });
}

function putReader(kind: Put['kind']) {
  return (json: JsonObject): Operation => ({
    kind,
    file: shape.text(json['file'], 'file'),
    digest: shape.digest(json['digest'], 'digest'),
  });
}

function removeReader(kind: Exclude<TlsFileOperation['kind'], Put['kind']>) {
  return (json: JsonObject): Operation => ({ kind, file: shape.text(json['file'], 'file') });
}

function lineReader(kind: CrtListOperation['kind']) {
  return (json: JsonObject): Operation => {
    const entry = shape.object(json['entry'], 'entry');
    const words = (name: 'options' | 'filters'): readonly string[] =>
      shape.list(entry[name], name, LIMITS.crtListWords).map((word) => shape.text(word, name));
    return {
      kind,
      list: shape.text(json['list'], 'list'),
      entry: {
        certificate: shape.text(entry['certificate'], 'certificate'),
        options: words('options'),
        filters: words('filters'),
      },
    };
  };
}

function pairOf(value: unknown): readonly [string, string] {
  const [key, text, ...more] = shape.list(value, 'entry', 2);
  if (more.length > 0) throw new BadRequest('entry is not a pair');
  return [shape.text(key, 'key'), shape.text(text, 'value')];
}
