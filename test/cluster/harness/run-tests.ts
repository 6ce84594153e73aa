/**
 * Runs the cluster tests: `test [--down] [VITEST-ARGUMENT...]`.
 */
import { SetupError, progress } from '../../../tools/setup/run-program.js';
import { bringUp, makeImages } from './bring-up.ts';
import type { Provided } from './daemons.ts';
import type { PackedImage } from './images.ts';
import { clusterEnvironment, down, isUp } from './lifecycle.ts';
import { findMachine, inNetworkOf } from './machine.ts';
import { CONTROL_PLANE, NODES, stateFolder } from './places.ts';
import { usesOwnCluster } from './requirements.ts';
import { attach, must, type Command } from './run.ts';

/** What the tests are told about the cluster, as JSON in the variable of {@link CONNECTION}. */
export interface Connection {
  /** The cluster of the harness, whose machines can be broken; undefined for a user's own. */
  readonly provided?: Provided;
  /** Absolute path. */
  readonly kubeconfig: string;
  /** Key of `images/contents.json` → name with tag. */
  readonly images: Readonly<Record<string, string>>;
  /** Names of the nodes; empty for a user's own cluster. */
  readonly nodes: readonly string[];
}

/** Name of the environment variable that holds the {@link Connection}. */
export const CONNECTION = 'HAPTIC_CLUSTER_CONNECTION';

/**
 * Runs vitest on the cluster tests: those that disturb nobody two files at a time, then the others one by one. The runner is
 * inside the network of the control plane, so that a test reaches the API server, pods and Services with any client.
 *
 * @param args files and other arguments of vitest; `--down` first ends the cluster afterwards, unless it was
 *   up before
 * @returns exit status of the runner
 */
export async function runTests(args: readonly string[]): Promise<number> {
  if (usesOwnCluster()) return runOnOwnCluster(args.filter((arg) => arg !== '--down'));
  const ends = args[0] === '--down' && !isUp();
  const interrupted = (): void => {
    void down().then(() => process.exit(130));
  };
  if (ends) process.once('SIGTERM', interrupted).once('SIGINT', interrupted);
  try {
    const { provided, images } = await bringUp();
    const hub = findMachine(provided.state, CONTROL_PLANE);
    if (hub === undefined) throw new Error('the control plane has ended');
    const environment = clusterEnvironment(provided);
    const { KUBECONFIG: kubeconfig = '' } = environment;
    const connection = { provided, kubeconfig, images: namesOf(images), nodes: NODES };
    process.off('SIGTERM', interrupted).off('SIGINT', interrupted); // now the runner gets them
    const command = inNetworkOf(hub, vitest(args.filter((arg) => arg !== '--down')));
    return await attach(command, connected(environment, connection));
  } finally {
    if (ends) await down();
    else progress(`the cluster stays up (${stateFolder()}): npm run cluster -- down`);
  }
}

/** Images are loaded by a command of the user's: it gets the path of one archive after the other. */
async function runOnOwnCluster(args: readonly string[]): Promise<number> {
  const { KUBECONFIG: kubeconfig, HAPTIC_CLUSTER_LOAD: load } = process.env;
  if (kubeconfig === undefined || load === undefined) {
    throw new SetupError(
      'HAPTIC_CLUSTER=own needs KUBECONFIG and HAPTIC_CLUSTER_LOAD, the command that loads an image archive ' +
        "into every node of the cluster, for example HAPTIC_CLUSTER_LOAD='kind load image-archive'",
    );
  }
  const images = await makeImages();
  for (const { archive, names } of images) {
    progress(`loading ${names[0]} …`);
    await must(['sh', '-c', `${load} "$1"`, 'load', archive], { timeoutMs: 600_000 });
  }
  const connection = { kubeconfig, images: namesOf(images), nodes: [] };
  return attach(vitest(args), connected(process.env, connection));
}

function vitest(args: readonly string[]): Command {
  const projects = ['--project', 'cluster', '--project', 'cluster-alone'];
  return ['vitest', 'run', '--config', 'test/vitest.config.ts', ...projects, ...args];
}

function connected(environment: NodeJS.ProcessEnv, connection: Connection): NodeJS.ProcessEnv {
  return { ...environment, [CONNECTION]: JSON.stringify(connection) };
}

function namesOf(images: readonly PackedImage[]): Record<string, string> {
  return Object.fromEntries(images.map(({ key, names: [name] }) => [key, name]));
}
