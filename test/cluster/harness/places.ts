/**
 * Where the test cluster keeps things, and the addresses in it.
 *
 * Node network 10.100.0.0/24: control plane .1, node N .1N, client N .5N. Pods of node N:
 * 10.244.N.0/24. ClusterIPs 10.96.0.0/16, LoadBalancer addresses 10.97.0.0/24. All of it exists in
 * network namespaces without a way out, so several clusters on one machine do not meet.
 */
import { createHash } from 'node:crypto';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheFolder as haproxyFolder } from '../../../tools/setup/haproxy.js';

/** Root of the checkout, without a slash at the end. */
export const REPOSITORY = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '');

/** Folder of the Go module that the programs of the cluster are built from. */
export const PROGRAMS = join(REPOSITORY, 'test/cluster/programs');

/** Address of the control plane: API server, etcd, the tests. */
export const CONTROL_PLANE_ADDRESS = '10.100.0.1';

/** URL of the API server. */
export const API_SERVER = `https://${CONTROL_PLANE_ADDRESS}:6443`;

/** First address of the ClusterIPs: Service `default/kubernetes`. */
export const KUBERNETES_SERVICE_ADDRESS = '10.96.0.1';

/** Where the LoadBalancer addresses come from. */
export const LOAD_BALANCER_PREFIX = '10.97.0.';

/** How many nodes there are. */
export const NODE_COUNT = 2;

/** Names of the nodes, which are also the names of their machines. */
export const NODES: readonly string[] = Array.from({ length: NODE_COUNT }, (_, n) => `node-${n}`);

/** Name of the machine that the control plane runs on. */
export const CONTROL_PLANE = 'control-plane';

/** @returns name of the outside client that reaches Services through a node */
export function clientOf(node: number): string {
  return `client-${node}`;
}

/** @returns address of a node in the node network */
export function nodeAddress(node: number): string {
  return `10.100.0.1${node}`;
}

/** @returns address of the outside client that reaches Services through a node */
export function clientAddress(node: number): string {
  return `10.100.0.5${node}`;
}

/** @returns the addresses of the pods of a node, as a prefix with its length */
export function podNetwork(node: number): string {
  return `10.244.${node}.0/24`;
}

/** @returns folder for what is built or downloaded once: packages, programs, images */
export function cacheFolder(): string {
  return join(dirname(haproxyFolder()), 'cluster');
}

/**
 * Folder of everything that a running cluster writes. Each checkout has one of its own, and one more for
 * each parent that is named. The path is short, because the names of unix sockets below it may have 107
 * characters in all. Its last part is the name of the cluster where it needs one.
 *
 * @param parent default: `$HAPTIC_CLUSTER_STATE`, else `/var/lib/haptic`
 */
export function stateFolder(parent = process.env['HAPTIC_CLUSTER_STATE']): string {
  const hash = createHash('sha256')
    .update(REPOSITORY)
    .update(parent ?? '');
  return join(parent ?? '/var/lib/haptic', hash.digest('hex').slice(0, 6));
}
