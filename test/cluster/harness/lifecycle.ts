/**
 * The cluster of this checkout: up, down, images, single machines.
 */
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { progress } from '../../../tools/setup/run-program.js';
import { lock } from './cache.ts';
import { adminKubeconfig, makeCertificates } from './certificates.ts';
import {
  containerdSocket,
  controlPlanePlan,
  environment,
  nodePlan,
  type Provided,
} from './daemons.ts';
import type { PackedImage } from './images.ts';
import {
  findMachine,
  haltMachine,
  inNetworkOf,
  isAnyMachineRunning,
  listMachines,
  releaseDaemons,
  releaseMachine,
  startMachine,
  type Machine,
} from './machine.ts';
import { connectClient, connectControlPlane, connectNode } from './network.ts';
import {
  CONTROL_PLANE,
  NODES,
  cacheFolder,
  clientAddress,
  clientOf,
  stateFolder,
} from './places.ts';
import { must, run, type Command, type Outcome, type RunOptions } from './run.ts';
import { logEnds, until } from './wait.ts';

/** Folders that daemons make outside of the state folder, where their mounts hang. */
const MOUNT_POINTS = ['/run/containerd', '/var/lib/kubelet', '/var/lib/cni', '/var/log/containers'];

/** File with those of them that were not there before. */
const MADE_FOLDERS = 'made-folders';

/** Pods, two kubelets and two containerds watch more files than the usual limit allows. */
const INOTIFY = '/proc/sys/fs/inotify/max_user_instances';
const INOTIFY_INSTANCES = 1024;

/** @returns whether the cluster is up, or was and has only lost nodes */
export function isUp(state = stateFolder()): boolean {
  const running = new Set(listMachines(state).map(({ name }) => name));
  const wanted = [CONTROL_PLANE, ...NODES.map((_, n) => clientOf(n))];
  return existsSync(join(state, 'up')) && wanted.every((name) => running.has(name));
}

/**
 * Brings the cluster up with these images, and clears away first what a crash has left. In one that is
 * up, nodes that a test has left without power are switched on again.
 *
 * @param images may be packed while the machines start
 * @throws when something does not get ready in time, with the ends of all logs
 */
export async function up(
  provided: Provided,
  images: Promise<readonly PackedImage[]>,
): Promise<void> {
  const { state } = provided;
  mkdirSync(cacheFolder(), { recursive: true });
  const release = await lock(join(cacheFolder(), `${basename(state)}.up`), 'the cluster to start');
  try {
    if (isUp(state)) await repair(provided);
    else {
      await down(state);
      await start(provided, images);
    }
    await loadImages(provided, await images);
  } finally {
    release();
  }
}

async function repair(provided: Provided): Promise<void> {
  for (const name of [CONTROL_PLANE, ...NODES]) releaseDaemons(provided.state, name);
  for (const [node, name] of NODES.entries()) {
    if (findMachine(provided.state, name) !== undefined) continue;
    progress(`${name} is switched on again`);
    await startNode(provided, node);
    await untilNodeReady(provided, node);
  }
}

async function start(provided: Provided, images: Promise<readonly PackedImage[]>): Promise<void> {
  const { state } = provided;
  const started = Date.now();
  mkdirSync(state, { recursive: true });
  const made = MOUNT_POINTS.filter((folder) => !existsSync(folder));
  writeFileSync(join(state, MADE_FOLDERS), made.map((folder) => `${folder}\n`).join(''));
  raiseInotifyLimit();
  try {
    await makeCertificates(state);
    const hub = await startMachine(state, controlPlanePlan(provided));
    await connectControlPlane(hub);
    releaseMachine(state, CONTROL_PLANE);
    await Promise.all(NODES.map((_, node) => startNode(provided, node)));
    await Promise.all(NODES.map((_, node) => startClient(state, hub, node)));
    const loading = images.then((packed) => loadImages(provided, packed));
    await Promise.all([loading, untilReady(provided)]);
  } catch (error: unknown) {
    throw new Error(`${String(error)}\n${logEnds(state)}`, { cause: error });
  }
  writeFileSync(join(state, 'up'), '');
  progress(`the test cluster is up after ${((Date.now() - started) / 1000).toFixed(1)} s`);
}

/** Starts a node, or starts it again with the disk it had. Does not wait until it is ready. */
export async function startNode(provided: Provided, node: number): Promise<void> {
  const { state } = provided;
  const hub = findMachine(state, CONTROL_PLANE);
  if (hub === undefined) throw new Error('the cluster is not up');
  const machine = await startMachine(state, nodePlan(provided, node));
  await connectNode(hub, machine, node);
  releaseMachine(state, machine.name);
}

/** Waits until a node is ready, by its own word too: a rebooted one looks Ready for some time. */
export async function untilNodeReady(provided: Provided, node: number): Promise<void> {
  const name = NODES[node] ?? '';
  await until({ what: `the kubelet of ${name}`, timeoutMs: 60_000 }, async () => {
    const probe: Command = ['bash', '-c', 'exec 3<>/dev/tcp/127.0.0.1/10248'];
    return (await runOn(provided, name, { command: probe })).status === 0;
  });
  await kubectlSucceeds(provided, 'get', 'node', name);
  await kubectlSucceeds(provided, 'wait', '--for=condition=Ready', `node/${name}`);
}

async function untilReady(provided: Provided): Promise<void> {
  await kubectlSucceeds(provided, 'get', '--raw', '/readyz');
  await Promise.all(NODES.map((_, node) => untilNodeReady(provided, node)));
  await kubectlSucceeds(provided, 'get', 'serviceaccount', 'default'); // pods need it
  for (const name of [CONTROL_PLANE, ...NODES]) {
    await until({ what: `the kube-proxy of ${name}`, timeoutMs: 60_000 }, async () => {
      const command: Command = ['nft', 'list', 'chain', 'ip', 'kube-proxy', 'services'];
      const options = { env: environment(provided) };
      return (await runOn(provided, name, { command, options })).status === 0;
    });
  }
}

/** Not often: to start kubectl takes a tenth of a second of a core, and the daemons need it more. */
async function kubectlSucceeds(provided: Provided, ...args: string[]): Promise<void> {
  const wait = { what: `kubectl ${args.join(' ')}`, timeoutMs: 120_000, intervalMs: 500 };
  await until(wait, async () => {
    const command: Command = ['kubectl', ...args];
    return (await runOn(provided, CONTROL_PLANE, { command })).status === 0;
  });
}

async function startClient(state: string, hub: Machine, node: number): Promise<void> {
  const machine = await startMachine(state, { name: clientOf(node), units: {}, env: {} });
  await connectClient(hub, machine, { address: clientAddress(node), node });
}

/** Loads images into every node that runs, unless they are the ones it has. */
export async function loadImages(
  provided: Provided,
  images: readonly PackedImage[],
): Promise<void> {
  const { state } = provided;
  const running = NODES.filter((name) => findMachine(state, name) !== undefined);
  await Promise.all(running.map((name) => loadInto(provided, name, images)));
  const names = images.map(({ key, names: [first] }) => [key, first]);
  writeFileSync(join(state, 'images.json'), JSON.stringify(Object.fromEntries(names), null, 2));
}

async function loadInto(
  provided: Provided,
  node: string,
  images: readonly PackedImage[],
): Promise<void> {
  const { state } = provided;
  const ctr = ['ctr', '--address', containerdSocket(state, node), '--namespace', 'k8s.io'] as const;
  const env = environment(provided);
  await until({ what: `containerd of ${node}`, timeoutMs: 60_000 }, async () => {
    return (await run([...ctr, 'version'], { env })).status === 0;
  });
  const file = join(state, node, 'images.json');
  const loaded = readLoaded(file);
  for (const { key, archive } of images) {
    if (loaded[key] === archive) continue;
    await must([...ctr, 'images', 'import', archive], { env });
    loaded[key] = archive;
    writeFileSync(file, JSON.stringify(loaded));
  }
}

function readLoaded(file: string): Partial<Record<string, string>> {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>) : {};
}

/** Ends everything and removes every trace. Does no harm when nothing is there. */
export async function down(state = stateFolder()): Promise<void> {
  const machines = listMachines(state);
  await Promise.all(machines.map(haltMachine));
  removeControlGroups(state);
  const madeFolders = readLines(join(state, MADE_FOLDERS));
  rmSync(state, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  if (!existsSync(state)) removeEmpty(join(state, '..'));
  // To remove a folder takes away what another cluster has mounted there.
  if (!isAnyMachineRunning()) madeFolders.forEach(removeEmpty);
}

function readLines(file: string): string[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '');
}

/** Runs a program in the network of a machine, with the programs of the cluster on its PATH. */
export async function runOn(
  provided: Provided,
  name: string,
  { command, options = {} }: { readonly command: Command; readonly options?: RunOptions },
): Promise<Outcome> {
  const machine = findMachine(provided.state, name);
  if (machine === undefined) throw new Error(`${name} is not running: npm run cluster -- up`);
  return run(inNetworkOf(machine, command), { env: clusterEnvironment(provided), ...options });
}

/** Environment for programs that talk to the cluster: kubectl and helm of its version, and its address. */
export function clusterEnvironment({ state, kubernetes, packages }: Provided): NodeJS.ProcessEnv {
  const path = [kubernetes, process.env['PATH'], ...packages.path];
  return { ...process.env, PATH: path.join(':'), KUBECONFIG: adminKubeconfig(state) };
}

function raiseInotifyLimit(): void {
  if (Number(readFileSync(INOTIFY, 'utf8')) >= INOTIFY_INSTANCES) return;
  try {
    writeFileSync(INOTIFY, String(INOTIFY_INSTANCES));
  } catch {
    progress(`${INOTIFY} cannot be raised: with many pods a kubelet may fail to watch its files`);
  }
}

/** Control groups of containers outlive them. Only an empty one can be removed, so children first. */
function removeControlGroups(state: string): void {
  const root = '/sys/fs/cgroup';
  for (const controller of readdirSync(root)) {
    const own = join(root, controller, 'haptic', basename(state));
    if (!existsSync(own)) continue;
    removeTree(own);
    removeEmpty(join(own, '..'));
  }
}

function removeTree(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) removeTree(join(folder, entry.name));
  }
  removeEmpty(folder);
}

function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // it is not there, or somebody else's
  }
}
