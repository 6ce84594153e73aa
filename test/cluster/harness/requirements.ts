/**
 * Whether this machine can run the test cluster.
 */
import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { whyNotDebian } from '../../../tools/setup/debian.js';
import { runProgram } from '../../../tools/setup/run-program.js';
import { stateFolder } from './places.ts';

const TOOLS = ['bash', 'ip', 'mount', 'nsenter', 'unshare'];

/** Of `statfs`: a file system that overlayfs does not take as its upper layer. */
const OVERLAYFS = 0x794c7630;

/** @returns whether the tests are to run on a cluster that the user names by `KUBECONFIG` */
export function usesOwnCluster(): boolean {
  return process.env['HAPTIC_CLUSTER'] === 'own';
}

/** @returns why the test cluster cannot run here, or undefined when it can */
export function whyNoCluster(): string | undefined {
  if (process.platform !== 'linux') return 'it needs the namespaces of Linux';
  if (process.getuid?.() !== 0) return 'it needs root, for namespaces and mounts';
  const missing = TOOLS.filter((tool) => !runProgram('sh', ['-c', `command -v ${tool}`]).ok);
  if (missing.length > 0) return `these programs are missing: ${missing.join(', ')}`;
  const tried = runProgram('unshare', ['--net', '--mount', '--pid', '--fork', 'true']);
  if (!tried.ok) return `namespaces cannot be made here: ${tried.stderr.trim()}`;
  return whyNotDebian() ?? whyNotThere(stateFolder());
}

function whyNotThere(state: string): string | undefined {
  const hint = 'set HAPTIC_CLUSTER_STATE to another folder';
  if (state.length > 60) return `the path ${state} is too long for unix sockets: ${hint}`;
  const type = fileSystemOf(dirname(state));
  return type === OVERLAYFS
    ? `${state} is on overlayfs, which cannot be stacked: ${hint}`
    : undefined;
}

function fileSystemOf(path: string): number {
  try {
    return statfsSync(path).type;
  } catch {
    return fileSystemOf(dirname(path)); // it will be made there
  }
}
