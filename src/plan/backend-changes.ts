import type { Operation } from '../protocol/protocol.ts';
import type { Capabilities, RuntimeState } from './change-set.ts';
import { isName } from './command-line.ts';
import { sortedDifferences } from './merkle-map.ts';
import type { Backend, Profile } from './plan.ts';
import { isReloadFree } from './reload-free.ts';
import { sameStructure } from './runtime-state.ts';
import {
  isUsable,
  serverChanges,
  type ServerChanges,
  type ServerContext,
} from './server-changes.ts';

/** Operations on one backend and its servers, in the groups that keep traffic served. */
export interface BackendChange extends ServerChanges {
  /** Makes the backend, before its servers. */
  readonly creates: readonly Operation[];
  /** Lets it take traffic, when it has its servers. */
  readonly publishes: readonly Operation[];
  /** Ends that, when nothing leads to it any more. */
  readonly unpublishes: readonly Operation[];
  /** Takes it away, when its servers have gone. */
  readonly deletes: readonly Operation[];
  /** No server takes traffic any more. */
  readonly empties: boolean;
}

/** What a worker and its files make possible. */
export interface BackendContext extends ServerContext {
  readonly capabilities: Capabilities;
}

/** What leads from a worker's backends to those of a plan, by name. */
export function backendChanges(
  before: RuntimeState['backends'],
  after: RuntimeState['backends'],
  context: BackendContext,
): readonly BackendChange[] {
  return sortedDifferences(before, after).flatMap(({ before: old, after: backend }) => {
    if (old === undefined) return backend === undefined ? [] : added(backend, context);
    return backend === undefined ? removed(old, context) : changed(old, backend, context);
  });
}

const NOTHING: BackendChange = {
  ...{ creates: [], publishes: [], unpublishes: [], deletes: [], empties: false },
  ...{ adds: [], updates: [], raises: [], lowers: [], removes: [] },
};

function added(backend: Backend, context: BackendContext): readonly BackendChange[] {
  const { name, profile, mode, structure } = backend;
  const obstacle = obstacleToAdd(backend, context);
  if (obstacle !== undefined) {
    context.reasons.add('backend-added', `backend ${name}: new, and ${obstacle}`);
    return [];
  }
  const servers = serverChanges({ ...backend, servers: [] }, backend, context);
  if (servers.adds.length < backend.servers.length) return [];
  return [
    {
      ...{ ...NOTHING, ...servers },
      creates: [{ kind: 'backend_add', backend: name, profile, mode, structure }],
      publishes: [{ kind: 'backend_publish', backend: name }],
    },
  ];
}

/** Why no command can make this backend. */
function obstacleToAdd(
  backend: Backend,
  { profiles, capabilities }: BackendContext,
): string | undefined {
  const { name, profile, bare, dynamic } = backend;
  if (!isReloadFree('backend-add', capabilities.haproxy)) {
    return `HAProxy ${capabilities.haproxy} cannot add backends`;
  }
  if (!dynamic) return backend.structuralReason ?? 'it is not dynamic';
  if (!bare) return 'it has lines of its own besides its servers';
  if (!isName(name) || !isName(profile)) return 'its name cannot be sent in a command';
  return profileObstacle(backend, profiles.get(profile));
}

/** A backend that is added takes these from its profile, whatever its text says. */
function profileObstacle(
  { profile, mode, balance, hashType }: Backend,
  loaded: Profile | undefined,
): string | undefined {
  if (loaded === undefined) return `its profile ${profile} is not loaded`;
  const same = loaded.mode === mode && loaded.balance === balance && loaded.hashType === hashType;
  return same ? undefined : `its profile ${profile} has another mode, balance or hash-type`;
}

function removed(backend: Backend, { capabilities, reasons }: BackendContext): BackendChange[] {
  const { name } = backend;
  const obstacle = obstacleToRemove(backend, capabilities);
  if (obstacle !== undefined) {
    reasons.add('backend-removed', `backend ${name}: removed, and ${obstacle}`);
    return [];
  }
  return [
    {
      ...NOTHING,
      unpublishes: [{ kind: 'backend_unpublish', backend: name }],
      removes: backend.servers.map((server): Operation => ({
        ...{ kind: 'server_remove', backend: name, server: server.name },
      })),
      deletes: [{ kind: 'backend_remove', backend: name }],
      empties: true,
    },
  ];
}

/** Why no command can take this backend away. */
function obstacleToRemove(
  { name, bare, dynamic, structuralReason, servers }: Backend,
  { haproxy }: Capabilities,
): string | undefined {
  if (!isReloadFree('backend-remove', haproxy)) return `HAProxy ${haproxy} cannot delete backends`;
  if (!dynamic) return structuralReason ?? 'it is not dynamic';
  if (!bare) return 'it had lines of its own besides its servers';
  const names = [name, ...servers.map((server) => server.name)];
  return names.every(isName) ? undefined : 'its name cannot be sent in a command';
}

function changed(
  old: Backend,
  backend: Backend,
  context: BackendContext,
): readonly BackendChange[] {
  if (!sameStructure(old, backend)) {
    const what = structuralChange(old, backend);
    context.reasons.add('backend-structure', `backend ${backend.name}: ${what}`);
    return [];
  }
  const empties = !backend.servers.some(isUsable);
  return [{ ...NOTHING, ...serverChanges(old, backend, context), empties }];
}

function structuralChange(before: Backend, after: Backend): string {
  if (before.profile !== after.profile) return `profile ${before.profile} became ${after.profile}`;
  if (before.mode !== after.mode) return `mode ${before.mode} became ${after.mode}`;
  if (before.balance !== after.balance) return `balance ${before.balance} became ${after.balance}`;
  return before.hashType === after.hashType ? 'its text changed' : 'hash-type changed';
}
