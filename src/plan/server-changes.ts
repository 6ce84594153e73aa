import type { Operation } from '../protocol/protocol.ts';
import { isAddressLiteral, isName } from './command-line.ts';
import { keywordObstacle, membershipObstacle, takesAnyWeight } from './dynamic-servers.ts';
import type { Backend, Plan, Server } from './plan.ts';
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

/** What a comparison of servers needs besides them. */
export interface ServerContext {
  /** Gets what only a reload can bring. */
  readonly reasons: ReloadReasons;
  /** TLS files that can be put into the worker before its servers; absent: only what it has loaded. */
  readonly files?: Plan['files'];
  /** As the worker loaded them. */
  readonly profiles: Plan['profiles'];
}

/**
 * What leads from one backend to another of equal structure. Where a reason for a reload was found nothing that takes capacity
 * away is in the result, since what replaces it may be part of that.
 */
export function serverChanges(
  before: Backend,
  after: Backend,
  { reasons, files, profiles }: ServerContext,
): ServerChanges {
  const changes: ServerChanges = { adds: [], updates: [], raises: [], lowers: [], removes: [] };
  const pairs = pairServers(before.servers, after.servers);
  const membership = membershipObstacle(before, after, profiles.get(after.profile));
  let blocked = false;
  for (const [old, server] of pairs) {
    const obstacle = obstacleOf({ old, server, before, membership, files });
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
  readonly files: Plan['files'] | undefined;
}
type Obstacle = readonly [
  'server-keywords' | 'backend-structure' | 'unsupported-operation',
  string,
];

function obstacleOf(change: Change): Obstacle | undefined {
  const { old, server, before, membership } = change;
  if (![before.name, (server ?? old)?.name ?? ''].every(isName)) {
    return ['unsupported-operation', 'has a name that no command can carry'];
  }
  if (old !== undefined && server !== undefined) return obstacleToUpdate(old, server, before);
  if (membership !== undefined) {
    return ['backend-structure', `is ${server === undefined ? 'removed' : 'added'}: ${membership}`];
  }
  return server === undefined ? undefined : obstacleToAdd(server, change);
}

function obstacleToAdd(server: Server, { before, files }: Change): Obstacle | undefined {
  if (!isAddressLiteral(server.address)) return noLiteral(server);
  const obstacle = keywordObstacle(server, before, files);
  return obstacle === undefined ? undefined : ['server-keywords', obstacle];
}

const noLiteral = ({ address }: Server): Obstacle => [
  'unsupported-operation',
  `has an address that is not an IP literal: ${address}`,
];

function obstacleToUpdate(old: Server, server: Server, before: Backend): Obstacle | undefined {
  if (!equalWords(withoutLimit(old.keywords), withoutLimit(server.keywords))) {
    return ['server-keywords', 'has other keywords'];
  }
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

/** The words with the number of `maxconn` left out: that can change, but neither come nor go. */
const withoutLimit = (words: readonly string[]): readonly string[] =>
  limitOf(words) === undefined ? words : words.with(words.indexOf('maxconn') + 1, '');

/** The number of `maxconn`, when it is one that a command can set. */
const limitOf = (words: readonly string[]): number | undefined => {
  const at = words.indexOf('maxconn');
  const word = at < 0 ? undefined : words[at + 1];
  return word !== undefined && /^[1-9]\d{0,8}$/.test(word) ? Number(word) : undefined;
};

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
  const maxconn = limitOf(after.keywords);
  const limit: Operation[] =
    maxconn === undefined || maxconn === limitOf(old.keywords)
      ? []
      : [{ kind: 'server_maxconn', backend, server, maxconn }];
  // A server that drains has no weight, whatever it is told meanwhile.
  if (old.state === 'drain') return [...limit, ...place, ...mode, ...weight];
  if (isUsable(after)) return [...limit, ...place, ...weight, ...mode];
  const leaves =
    state === 'ready' ? [...weight, ...mode, ...place] : [...mode, ...weight, ...place];
  return [...leaves, ...limit];
}
