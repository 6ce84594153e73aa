import type { Operation } from '../protocol/protocol.ts';
import type {
  Baseline,
  Capabilities,
  ChangeSet,
  ReloadReason,
  RuntimeState,
} from './change-set.ts';
import { mapChanges, type MapChanges } from './map-changes.ts';
import { differences, sortedDifferences } from './merkle-map.ts';
import type { Backend, Plan } from './plan.ts';
import { ReloadReasons } from './reload-reasons.ts';
import { sameStructure } from './runtime-state.ts';
import { isUsable, serverChanges, type ServerChanges } from './server-changes.ts';
import { changedFiles, structureChanges } from './structure-changes.ts';

/** With any other reason, map entries wait for the reload as a group: they may need what only it brings. */
const MAPS_NEED_NOT_WAIT: ReadonlySet<ReloadReason['cause']> = new Set(['backend-removed']);

/**
 * Difference of a plan against one pod's baseline. Pure; its cost follows the change, as long as baseline and plan share
 * records. Every prefix of the operations leaves traffic served (law P5).
 */
export function diff(baseline: Baseline, plan: Plan, capabilities: Capabilities): ChangeSet {
  const { applied, running, worker } = baseline;
  const outcome = { changedFiles: changedFiles(applied, plan), planId: plan.id };
  const reasons = new ReloadReasons();
  if (running === undefined || worker === undefined) {
    reasons.add('unknown-baseline', 'it is not known what the worker holds');
    return reload(outcome, reasons, []);
  }
  structureChanges(running, plan, reasons);
  const backends = backendChanges(worker.backends, plan.backends, reasons);
  const maps = mapChanges(worker.maps, plan.maps, reasons);
  const operations = inOrder(backends, maps);
  checkCapabilities(operations, capabilities, reasons);
  if (!reasons.empty) {
    const mapsWait = !reasons.only(MAPS_NEED_NOT_WAIT) && !sameRecords(worker.maps, plan.maps);
    return reload(outcome, reasons, inPlace({ backends, maps, mapsWait, capabilities }));
  }
  const verdict = operations.length === 0 ? 'files' : 'runtime';
  return { verdict, operations, inPlaceOperations: [], reasons: [], ...outcome };
}

const reload = (
  outcome: Pick<ChangeSet, 'changedFiles' | 'planId'>,
  reasons: ReloadReasons,
  inPlaceOperations: readonly Operation[],
): ChangeSet => ({
  verdict: 'reload',
  operations: [],
  inPlaceOperations,
  reasons: reasons.list(),
  ...outcome,
});

/**
 * Server operations alone, between two workers' states: what flows while the gate holds (see `graftServers`). Backends of
 * other structure, maps, and what only a reload could bring are left as they are.
 */
export function diffRuntime(
  worker: RuntimeState,
  target: RuntimeState,
  capabilities: Capabilities,
): readonly Operation[] {
  const reasons = new ReloadReasons();
  const backends = backendChanges(worker.backends, target.backends, reasons);
  return executable(inOrder(backends, NO_MAPS), capabilities);
}

interface BackendChange extends ServerChanges {
  /** No server takes traffic any more. */
  readonly empties: boolean;
}

const NO_MAPS: MapChanges = { adds: [], sets: [], deletes: [] };

function backendChanges(
  before: RuntimeState['backends'],
  after: Plan['backends'],
  reasons: ReloadReasons,
): readonly BackendChange[] {
  const changes: BackendChange[] = [];
  for (const { key, before: old, after: backend } of sortedDifferences(before, after)) {
    if (old === undefined) reasons.add('backend-added', `backend ${key}: new`);
    else if (backend === undefined) reasons.add('backend-removed', `backend ${key}: removed`);
    else if (!sameStructure(old, backend)) {
      reasons.add('backend-structure', `backend ${key}: ${structuralChange(old, backend)}`);
    } else {
      const empties = !backend.servers.some(isUsable);
      changes.push({ ...serverChanges(old, backend, reasons), empties });
    }
  }
  return changes;
}

function structuralChange(before: Backend, after: Backend): string {
  if (before.profile !== after.profile) return `profile ${before.profile} became ${after.profile}`;
  if (before.mode !== after.mode) return `mode ${before.mode} became ${after.mode}`;
  if (before.balance !== after.balance) return `balance ${before.balance} became ${after.balance}`;
  return before.hashType === after.hashType ? 'its text changed' : 'hash-type changed';
}

/** The order that never drops traffic: capacity, then the maps that use it, then what they no longer use. */
function inOrder(backends: readonly ServerChanges[], maps: MapChanges): readonly Operation[] {
  const group = (name: keyof ServerChanges): readonly Operation[] =>
    backends.flatMap((changes) => changes[name]);
  return [
    ...group('adds'),
    ...group('updates'),
    ...group('raises'),
    ...maps.adds,
    ...maps.sets,
    ...maps.deletes,
    ...group('lowers'),
    ...group('removes'),
  ];
}

function checkCapabilities(
  operations: readonly Operation[],
  { operationKinds, maxOperations }: Capabilities,
  reasons: ReloadReasons,
): void {
  const kinds = new Set<string>(operations.map(({ kind }) => kind)).difference(operationKinds);
  for (const kind of kinds) reasons.add('unsupported-operation', `the agent does not know ${kind}`);
  if (operations.length > maxOperations) {
    const message = `${operations.length} operations, at most ${maxOperations} go at once`;
    reasons.add('too-many-operations', message);
  }
}

interface PartialChange {
  readonly backends: readonly BackendChange[];
  readonly maps: MapChanges;
  /** Maps change, and only after the reload. */
  readonly mapsWait: boolean;
  readonly capabilities: Capabilities;
}

function inPlace({ backends, maps, mapsWait, capabilities }: PartialChange): readonly Operation[] {
  if (!mapsWait) return executable(inOrder(backends, maps), capabilities);
  // Maps that wait may still lead to a backend that the plan leaves without servers.
  const servers = backends.map((changes) =>
    changes.empties ? { ...changes, lowers: [], removes: [] } : changes,
  );
  return executable(inOrder(servers, NO_MAPS), capabilities);
}

const sameRecords = (before: Plan['maps'], after: Plan['maps']): boolean =>
  differences(before, after).next().done === true;

/** None when the agent lacks a kind that occurs, and no more than it takes: every prefix is safe. */
function executable(
  operations: readonly Operation[],
  { operationKinds, maxOperations }: Capabilities,
): readonly Operation[] {
  return operations.every(({ kind }) => operationKinds.has(kind))
    ? operations.slice(0, maxOperations)
    : [];
}
