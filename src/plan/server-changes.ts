import type { Operation } from '../protocol/protocol.ts';
import { isAddressLiteral } from './command-line.ts';
import { keywordObstacle, membershipObstacle, takesAnyWeight } from './dynamic-servers.ts';
import type { Backend, Server } from './plan.ts';
import type { ReloadReasons } from './reload-reasons.ts';

/**
 * Operations on servers in the groups that keep traffic served: what adds capacity comes before the maps that use it,
 * what takes it away after the maps that used it.
 */
export interface ServerChanges {
  readonly adds: Operation[];
  /** Address and weight of servers that take traffic before and after, or neither. */
  readonly updates: Operation[];
  readonly raises: Operation[];
  readonly lowers: Operation[];
  readonly removes: Operation[];
}

/** Takes new traffic. */
export const isUsable = (server: Server): boolean => server.state === 'ready' && server.weight > 0;

const NAME = /^[\w.:-]+$/;

/**
 * What leads from one backend to another of equal structure.
 *
 * @param reasons gets what only a reload can bring; then nothing that takes capacity away is in the result, since what
 * replaces it may be part of that
 */
export function serverChanges(
  before: Backend,
  after: Backend,
  reasons: ReloadReasons,
): ServerChanges {
  const changes: ServerChanges = { adds: [], updates: [], raises: [], lowers: [], removes: [] };
  const pairs = pairServers(before.servers, after.servers);
  const membership = membershipObstacle(before, after);
  let blocked = false;
  for (const [old, server] of pairs) {
    const obstacle = obstacleOf({ old, server, before, membership });
    if (obstacle === undefined) {
      sortIn(changes, operationsOf(after.name, old, server), phaseOf(old, server));
    } else {
      blocked = true;
      reasons.add(
        obstacle[0],
        `backend ${after.name}: server ${(server ?? old)?.name ?? ''} ${obstacle[1]}`,
      );
    }
  }
  return blocked ? { ...changes, lowers: [], removes: [] } : changes;
}

type Pair = readonly [old: Server | undefined, server: Server | undefined];

/** Merges two lists that are sorted by name; what is equal is left out. */
function pairServers(before: readonly Server[], after: readonly Server[]): readonly Pair[] {
  const old = new Map(before.map((server) => [server.name, server]));
  const kept = new Set(after.map(({ name }) => name));
  const pairs: Pair[] = after
    .map((server) => [old.get(server.name), server] as const)
    .filter(([left, right]) => left === undefined || !equalServers(left, right));
  for (const server of before) if (!kept.has(server.name)) pairs.push([server, undefined]);
  return pairs;
}

const equalServers = (left: Server, right: Server): boolean =>
  left === right ||
  (left.address === right.address &&
    left.port === right.port &&
    left.weight === right.weight &&
    left.state === right.state &&
    equalWords(left.keywords, right.keywords));

const equalWords = (left: readonly string[], right: readonly string[]): boolean =>
  left.length === right.length && left.every((word, at) => word === right[at]);

interface Change {
  readonly old: Server | undefined;
  readonly server: Server | undefined;
  readonly before: Backend;
  readonly membership: string | undefined;
}
type Obstacle = readonly [
  'server-keywords' | 'backend-structure' | 'unsupported-operation',
  string,
];

function obstacleOf(change: Change): Obstacle | undefined {
  const { old, server, before, membership } = change;
  if (![before.name, (server ?? old)?.name ?? ''].every((name) => NAME.test(name))) {
    return ['unsupported-operation', 'has a name that no command can carry'];
  }
  if (server === undefined) {
    return membership === undefined
      ? undefined
      : ['backend-structure', `is removed: ${membership}`];
  }
  return old === undefined
    ? obstacleToAdd(server, before, membership)
    : obstacleToUpdate(old, server, before);
}

const noLiteral = ({ address }: Server): Obstacle => [
  'unsupported-operation',
  `has an address that is not an IP literal: ${address}`,
];

function obstacleToAdd(server: Server, before: Backend, membership?: string): Obstacle | undefined {
  if (membership !== undefined) return ['backend-structure', `is added: ${membership}`];
  if (!isAddressLiteral(server.address)) return noLiteral(server);
  const obstacle = keywordObstacle(server, before);
  return obstacle === undefined ? undefined : ['server-keywords', obstacle];
}

function obstacleToUpdate(old: Server, server: Server, before: Backend): Obstacle | undefined {
  if (!equalWords(old.keywords, server.keywords)) return ['server-keywords', 'has other keywords'];
  if (old.address !== server.address && !isAddressLiteral(server.address)) return noLiteral(server);
  if (server.weight === old.weight || server.weight === 0 || takesAnyWeight(before))
    return undefined;
  return [
    'backend-structure',
    `has another weight: balance ${before.balance} keeps those it started with`,
  ];
}

const phaseOf = (old: Server | undefined, server: Server | undefined): keyof ServerChanges => {
  if (old === undefined) return 'adds';
  if (server === undefined) return 'removes';
  if (isUsable(old) === isUsable(server)) return 'updates';
  return isUsable(server) ? 'raises' : 'lowers';
};

const sortIn = (
  changes: ServerChanges,
  operations: readonly Operation[],
  phase: keyof ServerChanges,
): void => void changes[phase].push(...operations);

function operationsOf(
  backend: string,
  old: Server | undefined,
  server: Server | undefined,
): readonly Operation[] {
  if (server === undefined) {
    return old === undefined ? [] : [{ kind: 'server_remove', backend, server: old.name }];
  }
  if (old === undefined) {
    const { name, address, port, weight, state, keywords } = server;
    return [{ kind: 'server_add', backend, server: name, address, port, weight, state, keywords }];
  }
  return updateServer(backend, old, server);
}

/** A server never takes traffic on the way between two states in which it takes none, nor at an address it leaves. */
function updateServer(backend: string, old: Server, after: Server): readonly Operation[] {
  const { name: server, port, address, state, weight: share } = after;
  const place: Operation[] =
    old.address === address && old.port === port
      ? []
      : [{ kind: 'server_address', backend, server, address, port }];
  const weight: Operation[] =
    old.weight === share ? [] : [{ kind: 'server_weight', backend, server, weight: share }];
  const mode: Operation[] =
    old.state === state ? [] : [{ kind: 'server_state', backend, server, state }];
  // A server that drains has no weight, whatever it is told meanwhile.
  if (old.state === 'drain') return [...place, ...mode, ...weight];
  if (isUsable(after)) return [...place, ...weight, ...mode];
  return state === 'ready' ? [...weight, ...mode, ...place] : [...mode, ...weight, ...place];
}
