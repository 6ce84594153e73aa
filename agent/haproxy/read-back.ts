import { SocketAddress, isIPv6 } from 'node:net';
import type { Operation } from '../../src/protocol/protocol.ts';
import { escapeArgument } from './tokens.ts';
import type { WorkerIdentity } from './worker-identity.ts';
import type { Command, Worker } from './worker.ts';

/** What a server is to be after the operations; what none of them said is not looked at. `gone`: no traffic any more. */
interface ServerAim {
  readonly kind: 'server';
  readonly backend: string;
  readonly server: string;
  readonly address?: string;
  readonly port?: number;
  readonly weight?: number;
  readonly state?: 'ready' | 'drain' | 'maint' | 'gone';
}

/** What a map is to answer for a key; `null`: nothing. */
interface EntryAim {
  readonly kind: 'entry';
  readonly map: string;
  readonly key: string;
  readonly value: string | null;
}

type Aim = ServerAim | EntryAim;

/** What one look at the worker came to. */
export interface ReadBackResult {
  /** `backend/server` or the map, once for each thing that is not what the operations said, twice in a row. */
  readonly diverging: readonly string[];
  /** Things that could not be compared. */
  readonly unverified: number;
}

/** More than so many things are not compared: the operations are bounded, and so is the time under the lock. */
const MOST = 200;

/**
 * Compares what operations have touched with what the worker says afterwards: HAProxy has answered each of them, but
 * somebody else may speak to it too, or it may have done something else than it said.
 */
export class ReadBack {
  readonly #aims = new Map<string, { aim: Aim; misses: number }>();
  #skipped = 0;

  get size(): number {
    return this.#aims.size + this.#skipped;
  }

  /** These were executed; later ones on the same thing win. */
  expect(operations: readonly Operation[]): void {
    for (const operation of operations) {
      if (operation.kind === 'map_replace') this.#forgetMap(operation.map);
      else if ('server' in operation || 'map' in operation) this.#expectOne(operation);
      // HAProxy answers what else there is with what it did.
    }
    if (this.#aims.size <= MOST) return;
    this.#skipped += this.#aims.size;
    this.#aims.clear();
  }

  /** Another worker: it was started from files. */
  clear(): void {
    this.#aims.clear();
    this.#skipped = 0;
  }

  /** Looks once; what differs for the first time is looked at again the next time, for HAProxy changes addresses late. */
  async check(worker: Worker, on: WorkerIdentity): Promise<ReadBackResult> {
    let unverified = this.#skipped;
    this.#skipped = 0;
    const diverging: string[] = [];
    const verdicts = await verdictsOf(
      [...this.#aims.values()].map(({ aim }) => aim),
      { worker, on },
    );
    for (const [name, entry] of this.#aims) {
      const verdict = verdicts.get(entry.aim);
      if (verdict === 'differs' && (entry.misses += 1) < 2) continue;
      if (verdict === 'differs') diverging.push(targetOf(entry.aim));
      if (verdict === undefined) unverified += 1;
      this.#aims.delete(name);
    }
    return { diverging, unverified };
  }

  #expectOne(
    operation: Extract<Operation, { readonly server: string } | { readonly key: string }>,
  ): void {
    const name = JSON.stringify(
      'map' in operation ? [operation.map, operation.key] : [operation.backend, operation.server],
    );
    const former = this.#aims.get(name)?.aim;
    const aim = 'map' in operation ? entryAim(operation) : serverAim(operation, former);
    this.#aims.set(name, { aim, misses: 0 });
  }

  #forgetMap(map: string): void {
    for (const [name, { aim }] of this.#aims) {
      if (aim.kind === 'entry' && aim.map === map) this.#aims.delete(name);
    }
    this.#skipped += 1;
  }
}

function entryAim(
  operation: Extract<Operation, { kind: 'map_add' | 'map_set' | 'map_delete' }>,
): EntryAim {
  const { map, key } = operation;
  return { kind: 'entry', map, key, value: 'value' in operation ? operation.value : null };
}

function serverAim(
  operation: Extract<Operation, { readonly server: string }>,
  former: Aim | undefined,
): ServerAim {
  const { backend, server } = operation;
  const base = { kind: 'server', backend, server } as const;
  const kept = former?.kind === 'server' ? former : base;
  switch (operation.kind) {
    case 'server_add': {
      const { address, port, weight, state, keywords } = operation;
      // An agent-check changes weight and state by itself.
      return keywords.includes('agent-check')
        ? { ...base, address, port }
        : { ...base, address, port, weight, state };
    }
    case 'server_remove':
      return { ...base, state: 'gone' };
    case 'server_address':
      return { ...kept, address: operation.address, port: operation.port };
    case 'server_weight':
      return { ...kept, weight: operation.weight };
    case 'server_state':
      return { ...kept, state: operation.state };
    case 'server_maxconn':
      return kept;
  }
}

const targetOf = (aim: Aim): string =>
  aim.kind === 'server' ? `${aim.backend}/${aim.server}` : aim.map;

type Verdicts = Map<Aim, 'agrees' | 'differs'>;

/** One verdict for each thing the worker tells clearly about. */
async function verdictsOf(
  aims: readonly Aim[],
  { worker, on }: { readonly worker: Worker; readonly on: WorkerIdentity },
): Promise<Verdicts> {
  const verdicts: Verdicts = new Map();
  const servers = aims.filter((aim) => aim.kind === 'server');
  const backends = [...new Set(servers.map(({ backend }) => backend))];
  const states = await worker.run(backends.map((backend) => ask(`show servers state ${backend}`)));
  const rows = new Map(backends.map((name, index) => [name, rowsOf(states[index]?.text)]));
  for (const aim of servers) {
    const row = rows.get(aim.backend);
    if (row !== undefined) verdicts.set(aim, isServer(aim, row.get(aim.server)));
  }
  const entries: [EntryAim, string][] = [];
  for (const aim of aims) {
    if (aim.kind !== 'entry') continue;
    const reference = await worker.mapReference(aim.map, on).catch(() => undefined);
    if (reference !== undefined) entries.push([aim, reference]);
  }
  const answers = await worker.run(
    entries.map(([{ key }, reference]) => ask(`get map ${reference} ${escapeArgument(key)}`)),
  );
  for (const [index, [aim]] of entries.entries()) {
    const verdict = isEntry(aim, answers[index]?.text ?? '');
    if (verdict !== undefined) verdicts.set(aim, verdict);
  }
  return verdicts;
}

const ask = (line: string): Command => ({ line, accept: /./, tolerate: /./ });

/** The lines of `show servers state` by server; `undefined` when it is something else. */
function rowsOf(text = ''): ReadonlyMap<string, readonly string[]> | undefined {
  const [version, names, ...lines] = text.split('\n');
  if (version !== '1' || names?.startsWith('# be_id') !== true) return undefined;
  return new Map(lines.map((line) => line.split(' ')).map((row) => [row[3] ?? '', row]));
}

/** Bits of the administrative state that an operator sets: maintenance and drain. */
const MAINTENANCE = 1;
const DRAIN = 8;

function isServer(aim: ServerAim, row: readonly string[] | undefined): 'agrees' | 'differs' {
  if (row === undefined) return aim.state === 'gone' ? 'agrees' : 'differs';
  const [address, , admin, weight] = row.slice(4);
  const wanted = [
    [aim.address && canonical(aim.address), address],
    [aim.port?.toString(), row[18]],
    [aim.weight?.toString(), weight],
  ];
  const same = wanted.every(([aimed, real]) => aimed === undefined || aimed === real);
  return same && isState(aim.state, Number(admin)) ? 'agrees' : 'differs';
}

function isState(state: ServerAim['state'], admin: number): boolean {
  if (state === undefined) return true;
  if (state === 'ready') return (admin & (MAINTENANCE | DRAIN)) === 0;
  return (admin & (state === 'drain' ? DRAIN : MAINTENANCE)) !== 0;
}

/** As HAProxy prints it. */
const canonical = (address: string): string =>
  isIPv6(address) ? new SocketAddress({ address, family: 'ipv6' }).address : address;

/** Only a map that compares whole strings answers about the key itself. */
function isEntry({ key, value }: EntryAim, text: string): 'agrees' | 'differs' | undefined {
  const line = text.split('\n').find((one) => one.startsWith('type=str, case=sensitive, found='));
  if (line === undefined) return undefined;
  if (line.endsWith('found=no')) return value === null ? 'agrees' : 'differs';
  if (!line.endsWith(', type="str"')) return undefined;
  if (value === null) return 'differs';
  return line.endsWith(`, key="${key}", value="${value}", type="str"`) ? 'agrees' : 'differs';
}
