import type {
  AgentState,
  ApplyConflict,
  ApplyOutcome,
  ConflictReason,
  OperationResult,
  OutcomeKind,
  RejectStage,
  Roles,
  StoredPlan,
} from '../protocol/answers.ts';
import type { Operation } from '../protocol/protocol.ts';

/**
 * Readers of what an agent answers. The other side may be of another version or broken, so every member is looked at;
 * members that are not known are left out.
 */

type JsonObject = Readonly<Record<string, unknown>>;

const OUTCOMES: readonly OutcomeKind[] = [
  'runtime',
  'files',
  'reload',
  'scheduled',
  'noop',
  'rejected',
];
const STAGES: readonly RejectStage[] = ['request', 'stage', 'write', 'operations', 'reload'];
const CONFLICTS: readonly ConflictReason[] = [
  'stale_epoch',
  'baseline_mismatch',
  'worker_mismatch',
  'unknown_baseline',
  'missing_content',
  'target_running',
];

/** @throws Error naming the first member that is wrong */
export function readAgentState(value: unknown): AgentState {
  const json = object(value, 'state');
  const haproxy = object(json['haproxy'], 'haproxy');
  return {
    protocol: number(json['protocol'], 'protocol'),
    agentVersion: text(json['agentVersion'], 'agentVersion'),
    // Kinds this controller does not know are of no use to it, and harmless.
    operationKinds: list(json['operationKinds'], 'operationKinds').map(
      (kind) => text(kind, 'operation kind') as AgentState['operationKinds'][number],
    ),
    features: list(json['features'], 'features').map((feature) => text(feature, 'feature')),
    roles: readRoles(json['roles']),
    highestEpoch: number(json['highestEpoch'], 'highestEpoch'),
    haproxy: {
      version: text(haproxy['version'], 'version'),
      workerPid: number(haproxy['workerPid'], 'workerPid'),
      workerStartMs: number(haproxy['workerStartMs'], 'workerStartMs'),
      oldWorkers: number(haproxy['oldWorkers'], 'oldWorkers'),
    },
    files: list(json['files'], 'files').map(readFile),
    pendingReload: nullable(json['pendingReload'], readPendingReload),
    pendingDeletes: number(json['pendingDeletes'], 'pendingDeletes'),
    lastReload: nullable(json['lastReload'], readLastReload),
    ...(json['drift'] === undefined ? {} : { drift: readDrift(json['drift']) }),
  };
}

/** @throws Error naming the first member that is wrong */
export function readStoredPlan(value: unknown): StoredPlan {
  const json = object(value, 'stored plan');
  return {
    planId: planId(json['planId'], 'planId'),
    plan: text(json['plan'], 'plan'),
    operations: list(json['operations'], 'operations').map((operation) => {
      text(object(operation, 'operation')['kind'], 'operation kind');
      return operation as Operation; // as this or a former controller sent it, and the agent checked it
    }),
  };
}

/** @throws Error naming the first member that is wrong */
export function readOutcome(value: unknown): ApplyOutcome {
  const json = object(value, 'outcome');
  const timings = object(json['timings'], 'timings');
  const time = (name: string): number => number(timings[name], name);
  return {
    outcome: oneOf(json['outcome'], 'outcome', OUTCOMES),
    roles: readRoles(json['roles']),
    ...(json['error'] === undefined ? {} : { error: readError(json['error']) }),
    ...(json['reloadInMs'] === undefined
      ? {}
      : { reloadInMs: number(json['reloadInMs'], 'reloadInMs') }),
    failedOperations: list(json['failedOperations'], 'failedOperations').map(readOperationResult),
    operationsRun: number(json['operationsRun'], 'operationsRun'),
    timings: {
      stage: time('stage'),
      write: time('write'),
      operations: time('operations'),
      reload: time('reload'),
      confirmed: time('confirmed'),
      total: time('total'),
    },
  };
}

/** @throws Error naming the first member that is wrong */
export function readConflict(value: unknown): ApplyConflict {
  const json = object(value, 'conflict');
  return {
    conflict: oneOf(json['conflict'], 'conflict', CONFLICTS),
    roles: readRoles(json['roles']),
    highestEpoch: number(json['highestEpoch'], 'highestEpoch'),
    ...(json['missing'] === undefined
      ? {}
      : { missing: list(json['missing'], 'missing').map((path) => text(path, 'missing path')) }),
  };
}

function readRoles(value: unknown): Roles {
  const json = object(value, 'roles');
  return {
    applied: planId(json['applied'], 'applied'),
    running: planId(json['running'], 'running'),
    workerOperations: number(json['workerOperations'], 'workerOperations'),
    lkg: planId(json['lkg'], 'lkg'),
  };
}

function readError(value: unknown): NonNullable<ApplyOutcome['error']> {
  const json = object(value, 'error');
  return {
    stage: oneOf(json['stage'], 'stage', STAGES),
    message: text(json['message'], 'message'),
  };
}

function readOperationResult(value: unknown): OperationResult {
  const json = object(value, 'failed operation');
  return {
    kind: text(json['kind'], 'kind') as OperationResult['kind'],
    target: text(json['target'], 'target'),
    ok: json['ok'] === true,
    ...(json['message'] === undefined ? {} : { message: text(json['message'], 'message') }),
  };
}

function readFile(value: unknown): AgentState['files'][number] {
  const json = object(value, 'file');
  return {
    path: text(json['path'], 'path'),
    digest: text(json['digest'], 'digest'),
    size: number(json['size'], 'size'),
  };
}

function readDrift(value: unknown): NonNullable<AgentState['drift']> {
  const json = object(value, 'drift');
  const names = (member: string): readonly string[] =>
    list(json[member], member).map((name) => text(name, `name in ${member}`));
  return { modes: names('modes'), runtime: names('runtime') };
}

function readPendingReload(value: unknown): NonNullable<AgentState['pendingReload']> {
  const json = object(value, 'pendingReload');
  return { planId: text(json['planId'], 'planId'), inMs: number(json['inMs'], 'inMs') };
}

function readLastReload(value: unknown): NonNullable<AgentState['lastReload']> {
  const json = object(value, 'lastReload');
  return {
    planId: text(json['planId'], 'planId'),
    ok: json['ok'] === true,
    message: text(json['message'], 'message'),
    atMs: number(json['atMs'], 'atMs'),
    durationMs: number(json['durationMs'], 'durationMs'),
  };
}

function object(value: unknown, name: string): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as JsonObject;
  }
  throw new Error(`${name} is not an object`);
}

function list(value: unknown, name: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new Error(`${name} is not a list`);
}

function text(value: unknown, name: string): string {
  if (typeof value === 'string') return value;
  throw new Error(`${name} is not a string`);
}

function number(value: unknown, name: string): number {
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw new Error(`${name} is not a number`);
}

const nullable = <T>(value: unknown, read: (value: unknown) => T): T | null =>
  value === null ? null : read(value);

const planId = (value: unknown, name: string): string | null =>
  nullable(value, (id) => text(id, name));

function oneOf<T extends string>(value: unknown, name: string, words: readonly T[]): T {
  const word = words.find((candidate) => candidate === value);
  if (word === undefined) throw new Error(`${name} has a value this version does not know`);
  return word;
}
