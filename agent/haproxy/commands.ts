import { isIPv6 } from 'node:net';
import { LIMITS, type Operation } from '../../src/protocol/protocol.ts';
import { escapeArgument } from './tokens.ts';
import type { Command } from './worker.ts';

/** Operations on servers and backends: each is a fixed list of commands, so many of them fit on one line. */
export type ProxyOperation = Extract<Operation, { readonly backend: string }>;
/** Operations that put one entry into a map. */
export type EntryOperation = Extract<Operation, { readonly kind: 'map_add' | 'map_set' }>;

export const ENTRY_NOT_FOUND = /^entry not found\.?$/i;
const KEY_NOT_FOUND = /^key not found\.?$/i;

/**
 * The commands of one operation on a server or backend. Of `server_remove` only the half that stops traffic, of
 * `backend_remove` none: what remains happens when nothing uses them any more.
 */
export function proxyCommands(operation: ProxyOperation): Command[] {
  return 'server' in operation ? serverCommands(operation) : backendCommands(operation);
}

function backendCommands(operation: Exclude<ProxyOperation, { server: string }>): Command[] {
  const { kind, backend } = operation;
  switch (kind) {
    case 'backend_add': {
      const line = `add backend ${backend} from ${operation.profile} mode ${operation.mode}`;
      return [{ line, accept: /New backend registered\.$/ }];
    }
    case 'backend_publish':
      return [{ line: `publish backend ${backend}`, accept: /^Backend published\./ }];
    case 'backend_unpublish':
      return [{ line: `unpublish backend ${backend}`, accept: /^Backend unpublished\./ }];
    case 'backend_remove':
      return [];
  }
}

function serverCommands(operation: Extract<Operation, { readonly server: string }>): Command[] {
  const name = `${operation.backend}/${operation.server}`;
  switch (operation.kind) {
    case 'server_add':
      return addCommands(operation, name);
    case 'server_remove':
      return [{ line: `set server ${name} state maint`, accept: 'silent' }];
    case 'server_address':
      return [
        {
          line: `set server ${name} addr ${operation.address} port ${operation.port}`,
          accept: /^(?:IP changed|port changed|nothing changed|no need to change)/,
        },
      ];
    case 'server_weight':
      return [{ line: `set server ${name} weight ${operation.weight}`, accept: 'silent' }];
    case 'server_state':
      return [{ line: `set server ${name} state ${operation.state}`, accept: 'silent' }];
    case 'server_maxconn':
      return [{ line: `set maxconn server ${name} ${operation.maxconn}`, accept: 'silent' }];
  }
}

/** A server that is added is in maintenance until the last command, so it never takes traffic half made. */
function addCommands(
  operation: Extract<Operation, { kind: 'server_add' }>,
  name: string,
): Command[] {
  const host = isIPv6(operation.address) ? `[${operation.address}]` : operation.address;
  const words = [
    `add server ${name} ${host}:${operation.port} weight ${operation.weight}`,
    ...operation.keywords,
  ];
  const commands: Command[] = [{ line: words.join(' '), accept: /^New server registered/ }];
  const silently = (line: string): void => {
    commands.push({ line, accept: 'silent' });
  };
  if (operation.keywords.includes('check')) silently(`enable health ${name}`);
  if (operation.keywords.includes('agent-check')) silently(`enable agent ${name}`);
  if (operation.state === 'ready') silently(`enable server ${name}`);
  if (operation.state === 'drain') silently(`set server ${name} state drain`);
  return commands;
}

/** Deletes a server that is in maintenance. */
export const deleteServer = (name: string): Command => ({
  line: `del server ${name}`,
  accept: /^Server deleted/m,
  tolerate: /^No such server/,
});

/** Deletes a backend that is unpublished and has no servers. */
export const deleteBackend = (backend: string): Command => ({
  line: `del backend ${backend}`,
  accept: /^Backend deleted\./m, // earlier messages of the line may stand before it
  tolerate: /^(?:No such backend|Can't find backend|Cannot find backend)/i,
});

/** Waits until nothing uses a backend any more; that the wait was in vain is no error. */
export const waitBackendRemovable = (backend: string, waitMs: number): Command => ({
  line: `wait ${waitMs}ms be-removable ${backend}`,
  accept: /./,
  tolerate: /./,
  waitMs,
});

/** Waits until nothing is connected to a server any more; that the wait was in vain is no error. */
export const waitRemovable = (name: string, waitMs: number): Command => ({
  line: `wait ${waitMs}ms srv-removable ${name}`,
  accept: /./,
  tolerate: /./,
  waitMs,
});

/** Replaces the value of a key; replies that match {@link ENTRY_NOT_FOUND} say that it has to be added. */
export const setEntry = (reference: string, key: string, value: string): Command => ({
  line: `set map ${reference} ${escapeArgument(key)} ${escapeArgument(value)}`,
  accept: 'silent',
  tolerate: ENTRY_NOT_FOUND,
});

/** Removes a key, if it is there. HAProxy 3.4 removes one duplicate a time: done when the reply is not empty. */
export const deleteEntry = (reference: string, key: string): Command => ({
  line: `del map ${reference} ${escapeArgument(key)}`,
  accept: 'silent',
  tolerate: KEY_NOT_FOUND,
});

/**
 * Adds entries, as many in one command as fit its line.
 *
 * @param target reference of the map, with `@version ` before it for one that is being prepared
 */
export function addEntries(
  target: string,
  entries: Iterable<readonly [key: string, value: string]>,
): Command[] {
  const room = LIMITS.commandLineBytes - Buffer.byteLength(target) - 100;
  const commands: Command[] = [];
  let payload: string[] = [];
  let bytes = 0;
  const close = (): void => {
    if (payload.length > 0) commands.push({ line: `add map ${target}`, payload, accept: 'silent' });
    payload = [];
    bytes = 0;
  };
  for (const [key, value] of entries) {
    const line = `${key} ${value}`;
    const size = Buffer.byteLength(line) + 1;
    if (bytes + size > room) close();
    payload.push(line);
    bytes += size;
  }
  close();
  return commands;
}
