/**
 * The test cluster at the command line: `npm run cluster -- COMMAND`.
 */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { SetupError } from '../../../tools/setup/run-program.js';
import { bringUp } from './bring-up.ts';
import { adminKubeconfig } from './certificates.ts';
import { clusterEnvironment, down, isUp } from './lifecycle.ts';
import { findMachine, inNetworkOf, listMachines } from './machine.ts';
import { providePackages } from './packages.ts';
import { CONTROL_PLANE, clientOf, stateFolder } from './places.ts';
import { provideKubernetes } from './programs.ts';
import { runTests } from './run-tests.ts';
import { attach, type Command } from './run.ts';

const HELP = `npm run cluster -- COMMAND

  up               build what is not built yet, start the cluster, load the images
  load             pack the images again (npm run build first) and load what has changed
  down             end everything and remove every trace
  status           what runs, and which images there are
  kubectl ARG...   kubectl as the administrator
  helm ARG...      helm
  shell [COMMAND]  a shell (or a command) in the network of the control plane, with KUBECONFIG set
  client [COMMAND] the same in the network of an outside client, which sees only Services and pods
  logs NAME        the log of a daemon, for example node-0.kubelet; without a name: which there are
  test [FILE...]   the cluster tests, as npm run test:cluster -- FILE... does; with --down first the
                   cluster ends with them, unless it was up before
  images           the names of the images, as the last load has made them

The cluster has a control plane and two nodes, in namespaces of this machine without a way out. It needs
root. What is downloaded or built is kept in ~/.cache/haptic/cluster, everything else is in
${stateFolder()} and gone after "down".`;

const NOT_UP = 'the cluster is not up: npm run cluster -- up';

async function inside(machineName: string, command: Command): Promise<number> {
  const state = stateFolder();
  const machine = findMachine(state, machineName);
  if (machine === undefined) throw new SetupError(NOT_UP);
  // These are there already, or there would be no cluster.
  const provided = {
    state,
    packages: await providePackages(),
    kubernetes: await provideKubernetes(),
  };
  return attach(inNetworkOf(machine, command), clusterEnvironment(provided));
}

async function status(): Promise<number> {
  const state = stateFolder();
  const names = listMachines(state).map(({ name }) => name);
  console.log(isUp(state) ? 'up' : names.length === 0 ? 'down' : 'incomplete: "down", then "up"');
  if (names.length === 0) return 1;
  console.log(`machines: ${names.join(', ')}`);
  console.log(`kubeconfig: ${adminKubeconfig(state)} (valid inside: npm run cluster -- shell)`);
  return inside(CONTROL_PLANE, ['kubectl', 'get', 'nodes,pods', '--all-namespaces', '-o', 'wide']);
}

function logs(name: string | undefined): number {
  const folder = join(stateFolder(), 'logs');
  if (!existsSync(folder)) throw new SetupError('there are no logs: the cluster is not up');
  const found = name !== undefined && existsSync(join(folder, name));
  console.log(found ? readFileSync(join(folder, name), 'utf8') : readdirSync(folder).join('\n'));
  return found || name === undefined ? 0 : 1;
}

function shellOr([program, ...args]: readonly string[]): Command {
  return program === undefined ? [process.env['SHELL'] ?? 'bash'] : [program, ...args];
}

type Task = (args: readonly string[]) => Promise<number> | number;

const TASKS: Readonly<Record<string, Task>> = {
  up: async () => {
    await bringUp();
    return 0;
  },
  load: async () => {
    if (!isUp()) throw new SetupError(NOT_UP);
    await bringUp();
    return TASKS['images']?.([]) ?? 0;
  },
  down: async () => {
    await down();
    return 0;
  },
  status,
  kubectl: (args) => inside(CONTROL_PLANE, ['kubectl', ...args]),
  helm: async (args) => {
    // Much of helm needs no cluster.
    if (isUp()) return inside(CONTROL_PLANE, ['helm', ...args]);
    return attach([join(await provideKubernetes(), 'helm'), ...args], process.env);
  },
  shell: (args) => inside(CONTROL_PLANE, shellOr(args)),
  client: (args) => inside(clientOf(0), shellOr(args)),
  logs: ([name]) => logs(name),
  test: runTests,
  images: () => {
    const file = join(stateFolder(), 'images.json');
    console.log(existsSync(file) ? readFileSync(file, 'utf8') : 'none: npm run cluster -- up');
    return 0;
  },
};

async function main([name = '', ...args]: readonly string[]): Promise<number> {
  const task = Object.hasOwn(TASKS, name) ? TASKS[name] : undefined;
  if (task === undefined) {
    console.log(HELP);
    return name === '' || name === 'help' || name === '--help' ? 0 : 2;
  }
  return task(args);
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error: unknown) {
  if (!(error instanceof SetupError)) throw error;
  console.error(`haptic: ${error.message}`);
  process.exitCode = 1;
}
