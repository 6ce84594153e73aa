/**
 * A real Kubernetes cluster for tests: the one of `test/cluster/harness`, or a user's own.
 */
import { randomBytes } from 'node:crypto';
import { afterAll } from 'vitest';
import { runOn, startNode, untilNodeReady } from '../cluster/harness/lifecycle.ts';
import { findMachine, haltMachine, holdDaemon, signalDaemon } from '../cluster/harness/machine.ts';
import { CONTROL_PLANE, clientOf } from '../cluster/harness/places.ts';
import { CONNECTION, type Connection } from '../cluster/harness/run-tests.ts';
import {
  ProgramError,
  run,
  type Command,
  type Outcome,
  type RunOptions,
} from '../cluster/harness/run.ts';

/** Daemons of the control plane. */
export type ControlPlaneDaemon =
  'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler';

/** Daemons of a node. */
export type NodeDaemon = 'containerd' | 'kubelet' | 'kube-proxy';

/** Namespaces that the end of the test file removes. */
const made = new Set<string>();

afterAll(async () => {
  if (made.size === 0) return;
  await cluster().kubectl(['delete', 'namespace', ...made, '--wait=true', '--timeout=120s']);
});

/** A cluster to test on. */
export interface Cluster {
  /** Absolute path of the administrator's kubeconfig file. Also in `$KUBECONFIG`. */
  readonly kubeconfig: string;
  /** Names of the images with their tags: `controller`, `agent`, `haproxy-3.4`, `echo`, … */
  readonly images: Readonly<Record<string, string>>;
  /** Names of the nodes. Empty on a user's own cluster. */
  readonly nodes: readonly string[];
  /**
   * kubectl as the administrator.
   *
   * @returns standard output
   * @throws {ProgramError} when its exit status is not 0
   */
  readonly kubectl: (args: readonly string[], options?: RunOptions) => Promise<string>;
  /** Creates or changes objects. @throws {ProgramError} */
  readonly apply: (objects: readonly object[]) => Promise<void>;
  /** One object, or what a path of it says. @throws {ProgramError} */
  readonly get: <T>(args: readonly string[]) => Promise<T>;
  /** helm as the administrator. @returns standard output. @throws {ProgramError} */
  readonly helm: (args: readonly string[], options?: RunOptions) => Promise<string>;
  /** Runs a program where the test runs, which is inside the network of the control plane. */
  readonly run: (command: Command, options?: RunOptions) => Promise<Outcome>;
  /**
   * Runs a program where an outside client is: it reaches Services through one node.
   *
   * @param via number of the node. Default: 0
   */
  readonly client: (command: Command, via?: number) => Promise<Outcome>;
  /** What can be broken; undefined on a user's own cluster, where such tests cannot run. */
  readonly machines: Machines | undefined;
}

/** The machines of the cluster, for tests that break them. */
export interface Machines {
  /** Sends a signal to a daemon. After one that ends it, it starts again within about a second. */
  readonly signal: (
    machine: string,
    daemon: ControlPlaneDaemon | NodeDaemon,
    signal: NodeJS.Signals,
  ) => Promise<void>;
  /** Kills a daemon and keeps it from starting again, until {@link Machines.start}. */
  readonly stop: (machine: string, daemon: ControlPlaneDaemon | NodeDaemon) => Promise<void>;
  /** Lets a stopped daemon start again. Does not wait for it. */
  readonly start: (machine: string, daemon: ControlPlaneDaemon | NodeDaemon) => void;
  /** Power failure of a node: every process on it ends at once. */
  readonly killNode: (node: number) => Promise<void>;
  /** Switches a node on again, with the disk it had, and waits until it is Ready. */
  readonly bootNode: (node: number) => Promise<void>;
  /** Name of the machine that the daemons of the control plane run on. */
  readonly controlPlane: string;
}

/** @throws when the tests were not started in a way that brings a cluster up */
export function cluster(): Cluster {
  const text = process.env[CONNECTION];
  if (text === undefined) throw new Error('run it with "npm run test:cluster -- FILE"');
  const { provided, kubeconfig, images, nodes } = JSON.parse(text) as Connection;
  const local = (command: Command, options: RunOptions = {}): Promise<Outcome> => {
    return run(command, options);
  };
  const must = async (command: Command, options: RunOptions = {}): Promise<string> => {
    const outcome = await local(command, options);
    if (outcome.status !== 0) throw new ProgramError(command, outcome);
    return outcome.stdout;
  };
  const kubectl: Cluster['kubectl'] = (args, options) => must(['kubectl', ...args], options);
  return {
    kubeconfig,
    images,
    nodes,
    kubectl,
    apply: async (objects) => {
      const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
      await kubectl(['apply', '-f', '-'], { stdin });
    },
    get: async <T>(args: readonly string[]) => {
      return JSON.parse(await kubectl(['get', ...args, '-o', 'json'])) as T;
    },
    helm: (args, options) => must(['helm', ...args], options),
    run: local,
    client: (command, via = 0) => {
      if (provided === undefined) return local(command);
      return runOn(provided, clientOf(via), { command });
    },
    machines: provided === undefined ? undefined : machinesOf(provided, nodes),
  };
}

function machinesOf(
  provided: NonNullable<Connection['provided']>,
  nodes: readonly string[],
): Machines {
  const { state } = provided;
  const find = (name: string): NonNullable<ReturnType<typeof findMachine>> => {
    const machine = findMachine(state, name);
    if (machine === undefined) throw new Error(`${name} is not running`);
    return machine;
  };
  const signal: Machines['signal'] = (name, daemon, kind) => {
    return signalDaemon(state, find(name), { daemon, signal: kind });
  };
  return {
    controlPlane: CONTROL_PLANE,
    signal,
    stop: async (machine, daemon) => {
      holdDaemon(state, { machine, daemon, held: true });
      await signal(machine, daemon, 'SIGKILL');
    },
    start: (machine, daemon) => {
      holdDaemon(state, { machine, daemon, held: false });
    },
    killNode: (node) => haltMachine(find(nodes[node] ?? '')),
    bootNode: async (node) => {
      await startNode(provided, node);
      await untilNodeReady(provided, node);
    },
  };
}

/**
 * Makes a namespace for a test file, which is removed at its end with everything in it.
 *
 * @param purpose a word for its name
 * @returns its name
 */
export async function makeNamespace(purpose: string): Promise<string> {
  const name = `${purpose}-${randomBytes(3).toString('hex')}`;
  const { kubectl } = cluster();
  await kubectl(['create', 'namespace', name]);
  made.add(name);
  return name;
}
