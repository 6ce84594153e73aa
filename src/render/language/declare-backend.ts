/** The functions `backend` and `profile`: they print what they declare, so that text and record cannot differ. */
import { backendRecord, PlanError } from '../../plan/build.ts';
import type { Server } from '../../plan/plan.ts';
import { chunkText } from '../../cells/chunk.ts';
import { isAddress } from './addresses.ts';
import type { Emitter } from './emitters.ts';
import { TemplateFailure } from './failure.ts';
import {
  booleanArgument,
  linesArgument,
  listArgument,
  membersOf,
  optionalString,
  refuseArgument,
  wordArgument,
} from './parameters.ts';
import type { Run } from './run.ts';
import { EMPTY_TEXT, plain, Text } from './text.ts';
import { isRecord, kindOf, listOf, type Arguments } from './values.ts';
import { Profile, Writer, type ProfileFacts } from './writer.ts';

/** Members of the mapping that `backend()` takes. */
export const BACKEND_MEMBERS = [
  ...['name', 'mode', 'balance', 'hashType', 'profile', 'servers', 'body', 'dynamic'],
  'structuralReason',
];
/** Of the one that `server()` takes. */
export const SERVER_MEMBERS = ['name', 'address', 'port', 'weight', 'state', 'keywords'];
/** And of the one that `profile()` takes. */
export const PROFILE_MEMBERS = ['name', 'mode', 'balance', 'hashType', 'body'];

/** Words of a balance line: an algorithm and its arguments. */
const balance: Emitter = (value) =>
  /^[a-z_-]+(?:\([A-Za-z0-9_.,-]+\))?(?: [A-Za-z0-9_.,()-]+)*$/.test(value)
    ? { ok: true, text: value }
    : { ok: false, reason: 'it is no balancing algorithm with its arguments' };

/** One further word of a server line. */
const keyword: Emitter = (value) =>
  /^[A-Za-z0-9_.:/@+=*~,()-]+$/.test(value)
    ? { ok: true, text: value }
    : { ok: false, reason: 'it is no plain word' };

/** `{{ profile({name, body}) }}`: a named `defaults` section. */
export const declareProfile = ({ positional }: Arguments, { cell, out: { via } }: Run): Profile => {
  const place = cell.callPlace;
  const members = membersOf(positional[0], 'profile()', PROFILE_MEMBERS);
  const name = wordArgument(members['name'], 'profile().name');
  const body = linesArgument(members['body'], 'profile().body');
  const { mode, balance: algorithm, hashType } = members;
  const sets = {
    ...(isGiven(mode) && { mode: modeOf(mode, 'profile().mode') }),
    ...(isGiven(algorithm) && {
      balance: wordArgument(algorithm, 'profile().balance', balance),
    }),
    ...hashTypeOf(hashType, 'profile().hashType'),
  };
  const out = new Writer(via);
  out.write(`defaults ${name}\n${lines(sets)}`, place);
  out.writeText(body, place);
  const facts = {
    name,
    ...(overrides(body.value, sets) ? {} : sets),
    ...(DEFAULT_SERVER.test(body.value) && { defaultServer: true as const }),
  };
  return new Profile(facts, out.text());
};

/** Counts for the servers of the file; those that are added at run time do not inherit it, on any version. */
const DEFAULT_SERVER = /^\s*default-server\s/m;
const NOT_INHERITED = 'its default-server line does not count for servers added at run time';

/** Whether the body sets something else than what was declared: what comes later counts. */
const overrides = (body: string, sets: Omit<ProfileFacts, 'name'>): boolean => {
  const { mode, balance: algorithm, hashType } = sets;
  const declared = { mode, balance: algorithm, 'hash-type': hashType };
  return Object.entries(declared).some(([word, value]) => {
    const own = [...body.matchAll(new RegExp(`^\\s*${word}\\s+(.*?)\\s*$`, 'gm'))].at(-1)?.[1];
    return own !== undefined && own !== value;
  });
};

const isGiven = (value: unknown): boolean => value !== undefined && value !== null;

/** Lines that a backend and its profile have in common. */
const lines = (sets: Omit<ProfileFacts, 'name'>): string =>
  [
    ...(sets.mode === undefined ? [] : [`    mode ${sets.mode}\n`]),
    ...(sets.balance === undefined ? [] : [`    balance ${sets.balance}\n`]),
    ...(sets.hashType === undefined ? [] : [`    hash-type ${sets.hashType}\n`]),
  ].join('');

/** `{{ backend({…}) }}`: declares a backend; its text is printed where the cells stand, sorted by name. */
export const declareBackend = ({ positional }: Arguments, run: Run): Text => {
  const members = membersOf(positional[0], 'backend()', BACKEND_MEMBERS);
  const { cell } = run;
  const place = cell.callPlace;
  if (!cell.inSlot) refuseArgument('backend()', 'can only be called by a cell');
  const name = wordArgument(members['name'], 'backend().name');
  const record = {
    name,
    mode: modeOf(members['mode'] ?? 'http', 'backend().mode'),
    profile: wordArgument(members['profile'], 'backend().profile'),
    balance: wordArgument(members['balance'] ?? 'roundrobin', 'backend().balance', balance),
    ...hashTypeOf(members['hashType'], 'backend().hashType'),
  };
  const servers = elementsOf(members['servers'])
    .map((server) => serverOf(server, `a server of backend ${name}`))
    .sort((left, right) => (left.name < right.name ? -1 : Number(left.name > right.name)));
  const head = `backend ${name} from ${record.profile}\n${lines(record)}`;
  const body = linesArgument(members['body'], 'backend().body');
  const own = withoutComments(body.value);
  const out = new Writer(run.out.via);
  out.write(head, place);
  out.writeText(body, place);
  out.write(servers.map(serverLine).join(''), place);
  out.write('\n', place);
  const text = out.chunk(cell.object);
  const inherits = DEFAULT_SERVER.test(own);
  const reason = inherits
    ? NOT_INHERITED
    : optionalString(members['structuralReason'], 'backend().structuralReason');
  const backend = {
    ...record,
    structure: cell.digest(head + own),
    bare: own === '',
    text: cell.digest(chunkText(text)),
    dynamic: booleanArgument(members['dynamic'], 'backend().dynamic', true) && !inherits,
    ...(reason === undefined ? {} : { structuralReason: reason }),
    servers,
  };
  cell.effects.backends.push({ name, text, backend: sealed(backend, run) });
  return EMPTY_TEXT;
};

/**
 * `server({…})`: a server for `backend().servers`. Without a name it is called after address and port, so that it keeps its
 * name as long as it is there.
 */
export const declareServer = ({ positional }: Arguments): Server => {
  const members = membersOf(positional[0], 'server()', SERVER_MEMBERS);
  const address = String(plain(members['address'])).replaceAll(':', '-');
  const name = members['name'] ?? `${address}_${String(plain(members['port']))}`;
  return serverOf({ ...members, name }, 'server()');
};

const sealed = (
  backend: Parameters<typeof backendRecord>[0],
  run: Run,
): ReturnType<typeof backendRecord> => {
  try {
    return backendRecord(backend, run.cell.digest);
  } catch (error: unknown) {
    if (!(error instanceof PlanError)) throw error;
    throw new TemplateFailure(error.message, {
      nextStep: 'Give every server of the backend a name of its own and valid values.',
      reason: 'ValueRefused',
    });
  }
};

const modeOf = (value: unknown, where: string): 'http' | 'tcp' => {
  const mode = wordArgument(value, where);
  return mode === 'http' || mode === 'tcp'
    ? mode
    : refuseArgument(where, 'is neither "http" nor "tcp"');
};

const hashTypeOf = (value: unknown, where: string): { hashType?: string } =>
  isGiven(value) ? { hashType: wordArgument(value, where) } : {};

/** A server as `routes` has them, every value checked for the place it is printed at. */
const serverOf = (value: unknown, where: string): Server => {
  if (!isRecord(value)) return refuseArgument(where, 'is no mapping');
  const name = wordArgument(value['name'], `the name of ${where}`);
  if (name.length > 127) refuseArgument(`the name of ${where}`, 'is longer than 127 characters');
  const address = wordArgument(value['address'], `the address of ${where}`);
  if (!isAddress(address)) {
    refuseArgument(`the address of ${where}`, 'is no IPv4 or IPv6 address');
  }
  const state = plain(value['state'] ?? 'ready');
  if (state !== 'ready' && state !== 'maint') {
    return refuseArgument(`the state of ${where}`, 'is neither "ready" nor "maint"');
  }
  return {
    name,
    address,
    port: integerOf(value['port'], `the port of ${where}`, [1, 65_535]),
    weight: integerOf(value['weight'] ?? 1, `the weight of ${where}`, [0, 256]),
    state,
    keywords: listArgument(value['keywords'], `the keywords of ${where}`).map((word) =>
      wordArgument(word, `a keyword of ${where}`, keyword),
    ),
  };
};

/** Servers are checked one by one, so they need not be stripped of brands first. */
const elementsOf = (servers: unknown): readonly unknown[] =>
  servers === undefined || servers === null
    ? []
    : (listOf(servers) ?? refuseArgument('backend().servers', `is ${kindOf(servers)}, not a list`));

const integerOf = (value: unknown, name: string, [low, high]: readonly [number, number]): number =>
  typeof value === 'number' && Number.isInteger(value) && value >= low && value <= high
    ? value
    : refuseArgument(name, `is no whole number from ${low} to ${high}`);

const serverLine = ({ name, address, port, weight, state, keywords }: Server): string => {
  const host = address.includes(':') ? `[${address}]` : address;
  const words = [
    ...['server', name, `${host}:${port}`, 'weight', String(weight)],
    ...(state === 'maint' ? ['disabled'] : []),
    ...keywords,
  ];
  return `    ${words.join(' ')}\n`;
};

/** Lines that are comments as a whole say nothing to HAProxy. */
const withoutComments = (text: string): string =>
  text
    .split('\n')
    .filter((line) => !/^\s*(?:#|$)/.test(line))
    .join('\n');
