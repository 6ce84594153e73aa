/**
 * Joins the network namespaces of the machines: a bridge at the control plane, a pair of interfaces
 * for everybody else. There is no way out.
 */
import { inNetworkOf, type Machine } from './machine.ts';
import { CONTROL_PLANE_ADDRESS, NODES, nodeAddress, podNetwork } from './places.ts';
import { must, run } from './run.ts';

/** ClusterIPs and LoadBalancer addresses. */
const SERVICES = '10.96.0.0/15';
const BRIDGE = 'br0';

/** Makes the bridge. */
export async function connectControlPlane(machine: Machine): Promise<void> {
  await configure(machine, [
    'ip link set lo up',
    `ip link add ${BRIDGE} type bridge`,
    `ip addr add ${CONTROL_PLANE_ADDRESS}/24 dev ${BRIDGE}`,
    `ip link set ${BRIDGE} up`,
    // Where br_netfilter is built in, it is on in each new namespace: what is only passed on here would
    // go through the rules of the kube-proxy here, and never arrive.
    'for f in /proc/sys/net/bridge/bridge-nf-call-*; do [ ! -e "$f" ] || echo 0 >"$f"; done',
    // An address is looked up before the rules that replace it.
    `ip route add ${SERVICES} dev ${BRIDGE}`,
    ...NODES.map((_, n) => `ip route add ${podNetwork(n)} via ${nodeAddress(n)}`),
  ]);
}

/** Connects a node: it passes on what is for its pods and reaches the pods of the others. */
export async function connectNode(hub: Machine, machine: Machine, node: number): Promise<void> {
  await plug(hub, machine, `node${node}`);
  const others = NODES.map((_, n) => n).filter((n) => n !== node);
  await configure(machine, [
    'ip link set lo up',
    `ip addr add ${nodeAddress(node)}/24 dev eth0`,
    'ip link set eth0 up',
    `ip route add default via ${CONTROL_PLANE_ADDRESS}`,
    'echo 1 >/proc/sys/net/ipv4/ip_forward',
    ...others.map((n) => `ip route add ${podNetwork(n)} via ${nodeAddress(n)}`),
  ]);
}

/** Connects an outside client, which reaches Services through one node. */
export async function connectClient(
  hub: Machine,
  machine: Machine,
  { address, node }: { readonly address: string; readonly node: number },
): Promise<void> {
  await plug(hub, machine, `client${node}`);
  await configure(machine, [
    'ip link set lo up',
    `ip addr add ${address}/24 dev eth0`,
    'ip link set eth0 up',
    `ip route add ${SERVICES} via ${nodeAddress(node)}`,
    ...NODES.map((_, n) => `ip route add ${podNetwork(n)} via ${nodeAddress(n)}`),
  ]);
}

async function plug(hub: Machine, machine: Machine, port: string): Promise<void> {
  // After a machine was killed, its end of the cable may be there for a moment still.
  await run(inNetworkOf(hub, ['ip', 'link', 'del', port]));
  const here = ['ip', 'link', 'add', 'name', port, 'netns', String(hub.pid)] as const;
  await must([...here, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(machine.pid)]);
  await must(inNetworkOf(hub, ['ip', 'link', 'set', port, 'master', BRIDGE, 'up']));
}

async function configure(machine: Machine, lines: readonly string[]): Promise<void> {
  await must(inNetworkOf(machine, ['sh', '-ec', lines.join('\n')]));
}
