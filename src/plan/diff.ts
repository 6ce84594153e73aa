import type { Operation } from '../protocol/protocol.ts';
import { backendChanges, type BackendChange } from './backend-changes.ts';
import type {
  Baseline,
  Capabilities,
  ChangeSet,
  ReloadReason,
  RuntimeState,
} from './change-set.ts';
import { mapChanges, type MapChanges } from './map-changes.ts';
import { differences } from './merkle-map.ts';
import type { Plan } from './plan.ts';
import { ReloadReasons } from './reload-reasons.ts';
import { changedFiles, structureChanges } from './structure-changes.ts';
import { NO_TLS, tlsChanges, type TlsChanges } from './tls-changes.ts';

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
  const { files } = plan;
  const context = { profiles: loadedProfiles(running, plan), capabilities, reasons, files };
  const backends = backendChanges(worker.backends, plan.backends, context);
  const maps = mapChanges([worker.maps, plan.maps], running.maps, reasons);
  const servers = backends.flatMap(({ adds, removes }) => [...adds, ...removes]);
  const tls = tlsChanges([worker, plan], servers, reasons);
  const operations = inOrder({ backends, maps, tls });
  checkCapabilities(operations, capabilities, reasons);
  if (!reasons.empty) {
    const mapsWait = !reasons.only(MAPS_NEED_NOT_WAIT) && !sameRecords(worker.maps, plan.maps);
    return reload(outcome, reasons, inPlace({ backends, maps, tls, mapsWait, capabilities }));
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
  const both = differences(worker.backends, target.backends).filter(
    ({ before, after }) => before !== undefined && after !== undefined,
  );
  const staying = new Map(Array.from(both, ({ key, after }) => [key, after]));
  const context = { profiles: worker.profiles, capabilities, reasons: new ReloadReasons() };
  const backends = backendChanges(worker.backends, worker.backends.with(staying), context);
  return executable(inOrder({ backends, maps: NO_MAPS, tls: NO_TLS }), capabilities);
}

const NO_MAPS: MapChanges = { adds: [], sets: [], deletes: [] };

/** Profiles that the worker has loaded as the plan has them: what builds on them is the same now and after a start. */
const loadedProfiles = (running: Plan, plan: Plan): Plan['profiles'] => {
  const changed = differences(running.profiles, plan.profiles);
  return plan.profiles.with(new Map(Array.from(changed, ({ key }) => [key, undefined])));
};

interface Changes {
  readonly backends: readonly BackendChange[];
  readonly maps: MapChanges;
  readonly tls: TlsChanges;
}

/**
 * The order that never drops traffic: certificates and capacity, then the maps and names that use them, then what they no
 * longer use.
 */
function inOrder({ backends, maps, tls }: Changes): readonly Operation[] {
  const group = (name: Exclude<keyof BackendChange, 'empties'>): readonly Operation[] =>
    backends.flatMap((changes) => changes[name]);
  return [
    ...tls.files,
    ...group('creates'),
    ...group('adds'),
    ...group('updates'),
    ...group('raises'),
    ...group('publishes'),
    ...tls.adds,
    ...maps.adds,
    ...maps.sets,
    ...maps.deletes,
    ...tls.deletes,
    ...group('lowers'),
    ...group('unpublishes'),
    ...group('removes'),
    ...group('deletes'),
    ...tls.removes,
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

interface PartialChange extends Changes {
  /** Maps change, and only after the reload. */
  readonly mapsWait: boolean;
  readonly capabilities: Capabilities;
}

/** Names keep their certificates until the reload, which may move them to another list. */
function inPlace(change: PartialChange): readonly Operation[] {
  const { backends, maps, mapsWait, capabilities } = change;
  const tls = { ...change.tls, deletes: [], removes: [] };
  if (!mapsWait) return executable(inOrder({ backends, maps, tls }), capabilities);
  // Maps that wait may still lead to a backend that the plan leaves without servers, or leaves out.
  const kept = backends.map((changes) =>
    changes.empties
      ? { ...changes, lowers: [], unpublishes: [], removes: [], deletes: [] }
      : changes,
  );
  return executable(inOrder({ backends: kept, maps: NO_MAPS, tls }), capabilities);
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
