/**
 * Which daemons a machine runs, and with which settings.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { credential } from './certificates.ts';
import type { MachinePlan } from './machine.ts';
import type { Packages } from './packages.ts';
import {
  API_SERVER,
  CONTROL_PLANE,
  CONTROL_PLANE_ADDRESS,
  LOAD_BALANCER_PREFIX,
  NODES,
  nodeAddress,
  podNetwork,
} from './places.ts';
import type { Command } from './run.ts';

/** What the plans are made from. */
export interface Provided {
  /** Folder of the cluster. */
  readonly state: string;
  readonly packages: Packages;
  /** Folder with the programs of Kubernetes, and helm. */
  readonly kubernetes: string;
}

/** The image that holds the namespaces of a pod. */
const PAUSE_IMAGE = 'haptic.test/pause:1';
const ETCD = 'http://127.0.0.1:2379';
const ETCD_PEER = 'http://127.0.0.1:2380';

/** Environment of everything that runs in a cluster. */
export function environment({ packages, kubernetes }: Provided): Record<string, string> {
  const path = [kubernetes, ...packages.path, '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
  return { PATH: path.join(':'), LD_LIBRARY_PATH: packages.libraries, HOME: '/root' };
}

/** The control plane, with a kube-proxy of its own so that tests there reach Services. */
export function controlPlanePlan(provided: Provided): MachinePlan {
  const { state } = provided;
  const folder = join(state, CONTROL_PLANE);
  mkdirSync(folder, { recursive: true });
  return {
    name: CONTROL_PLANE,
    // The API server shares two cores with the tests: memory for time.
    env: { ...environment(provided), GOGC: '400' },
    units: {
      etcd: [
        'etcd',
        ...['--name', 'test', '--data-dir', join(folder, 'etcd'), '--log-level', 'warn'],
        ...['--listen-client-urls', ETCD, '--advertise-client-urls', ETCD],
        ...['--listen-peer-urls', ETCD_PEER, '--initial-advertise-peer-urls', ETCD_PEER],
        ...['--initial-cluster', `test=${ETCD_PEER}`, '--unsafe-no-fsync'],
      ],
      'kube-apiserver': apiServer(state),
      'kube-controller-manager': [
        'kube-controller-manager',
        ...asUser(state, 'controller-manager'),
        `--root-ca-file=${credential(state, 'ca.crt')}`,
        `--cluster-signing-cert-file=${credential(state, 'ca.crt')}`,
        `--cluster-signing-key-file=${credential(state, 'ca.key')}`,
        `--service-account-private-key-file=${credential(state, 'service-accounts.key')}`,
        '--use-service-account-credentials',
        `--flex-volume-plugin-dir=${join(folder, 'volume-plugins')}`,
      ],
      'kube-scheduler': ['kube-scheduler', ...asUser(state, 'scheduler')],
      // It waits for a node of this name, and the control plane is none.
      'kube-proxy': kubeProxy(state, { machine: CONTROL_PLANE, node: NODES[0] ?? '' }),
      'load-balancer': [
        process.execPath,
        fileURLToPath(new URL('load-balancer.ts', import.meta.url)),
        ...[credential(state, 'admin.kubeconfig'), LOAD_BALANCER_PREFIX],
      ],
    },
  };
}

function apiServer(state: string): Command {
  const file = (name: string): string => credential(state, name);
  return [
    'kube-apiserver',
    `--etcd-servers=${ETCD}`,
    ...[`--bind-address=${CONTROL_PLANE_ADDRESS}`, `--advertise-address=${CONTROL_PLANE_ADDRESS}`],
    `--secure-port=${new URL(API_SERVER).port}`,
    ...[
      `--tls-cert-file=${file('apiserver.crt')}`,
      `--tls-private-key-file=${file('apiserver.key')}`,
    ],
    `--client-ca-file=${file('ca.crt')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${file('service-accounts.pub')}`,
    `--service-account-signing-key-file=${file('service-accounts.key')}`,
    '--authorization-mode=Node,RBAC',
    '--service-cluster-ip-range=10.96.0.0/16',
    '--allow-privileged=true',
    '--enable-aggregator-routing=true', // webhooks are called at their pods: there is no proxy here
    `--kubelet-certificate-authority=${file('ca.crt')}`,
    `--kubelet-client-certificate=${file('kubelet-client.crt')}`,
    `--kubelet-client-key=${file('kubelet-client.key')}`,
    '--kubelet-preferred-address-types=InternalIP',
  ];
}

function asUser(state: string, user: string): string[] {
  const file = credential(state, `${user}.kubeconfig`);
  const settings = ['kubeconfig', 'authentication-kubeconfig', 'authorization-kubeconfig'];
  return [
    ...settings.map((name) => `--${name}=${file}`),
    '--bind-address=127.0.0.1',
    // As in production it ends when it cannot renew its lease, and starts anew: one that remembers how old the heartbeats were
    // would call nodes lost when the API server comes back, before they could report.
    '--leader-elect-lease-duration=6s',
    '--leader-elect-renew-deadline=4s',
    '--leader-elect-retry-period=1s',
  ];
}

function kubeProxy(state: string, { machine, node }: { machine: string; node: string }): Command {
  const file = join(state, machine, 'kube-proxy.json');
  const configuration = {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'nftables',
    clusterCIDR: '10.244.0.0/16',
    detectLocalMode: 'ClusterCIDR',
    hostnameOverride: node,
    clientConnection: { kubeconfig: credential(state, 'proxy.kubeconfig') },
    healthzBindAddress: '127.0.0.1:10256',
    metricsBindAddress: '127.0.0.1:10249',
    // Limits of the whole kernel, which cannot be set from inside a namespace.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
  };
  writeFileSync(file, JSON.stringify(configuration));
  return ['kube-proxy', `--config=${file}`];
}

/** A node: containerd, kubelet and kube-proxy. */
export function nodePlan(provided: Provided, node: number): MachinePlan {
  const { state } = provided;
  const name = NODES[node] ?? '';
  const folder = join(state, name);
  for (const part of ['cni', 'logs', 'kubelet', 'state']) {
    mkdirSync(join(folder, part), { recursive: true });
  }
  writeFileSync(join(folder, 'resolv.conf'), '');
  writeFileSync(join(folder, 'cni/10-test.conflist'), JSON.stringify(podNetworkOf(folder, node)));
  writeFileSync(join(folder, 'containerd.toml'), containerdConfiguration(provided, folder));
  writeFileSync(
    join(folder, 'kubelet.json'),
    JSON.stringify(kubeletConfiguration(state, { name, folder, node })),
  );
  return {
    name,
    env: environment(provided),
    // The programs write there whatever their configuration says. In memory, so that nothing is left.
    mounts: [
      ...['/run/containerd', '/var/lib/kubelet', '/var/lib/cni', '/var/log/containers'],
      join(folder, 'state'),
    ],
    units: {
      containerd: ['containerd', '--config', join(folder, 'containerd.toml')],
      kubelet: [
        'kubelet',
        `--hostname-override=${name}`,
        `--node-ip=${nodeAddress(node)}`,
        `--root-dir=${join(folder, 'kubelet')}`,
        `--kubeconfig=${credential(state, `${name}.kubeconfig`)}`,
        `--config=${join(folder, 'kubelet.json')}`,
      ],
      'kube-proxy': kubeProxy(state, { machine: name, node: name }),
    },
  };
}

/** @returns address of a node's containerd */
export function containerdSocket(state: string, node: string): string {
  return join(state, node, 'containerd.sock');
}

/** Routes instead of a bridge: a pod keeps its address on the way to another node. */
function podNetworkOf(folder: string, node: number): object {
  const ipam = {
    type: 'host-local',
    dataDir: join(folder, 'ipam'),
    ranges: [[{ subnet: podNetwork(node) }]],
    routes: [{ dst: '0.0.0.0/0' }],
  };
  return {
    cniVersion: '1.0.0',
    name: 'test',
    plugins: [
      { type: 'ptp', ipMasq: false, ipam },
      { type: 'portmap', backend: 'nftables', capabilities: { portMappings: true } },
    ],
  };
}

function containerdConfiguration({ packages }: Provided, folder: string): string {
  const quoted = (text: string): string => JSON.stringify(text);
  return `version = 3
root = ${quoted(join(folder, 'containerd'))}
state = ${quoted(join(folder, 'state'))}
[grpc]
  address = ${quoted(join(folder, 'containerd.sock'))}
[plugins.'io.containerd.internal.v1.opt']
  path = ${quoted(join(folder, 'opt'))}
[plugins.'io.containerd.nri.v1.nri']
  disable = true
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = ${quoted(PAUSE_IMAGE)}
[plugins.'io.containerd.cri.v1.runtime']
  # Root may be without CAP_SYS_RESOURCE; then no pod starts unless this is set.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = [${quoted(join(packages.root, 'usr/lib/cni'))}]
    conf_dir = ${quoted(join(folder, 'cni'))}
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = "runc"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
        BinaryName = ${quoted(join(packages.root, 'usr/sbin/runc'))}
        SystemdCgroup = false
`;
}

function kubeletConfiguration(
  state: string,
  { name, folder, node }: { name: string; folder: string; node: number },
): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    address: nodeAddress(node),
    readOnlyPort: 0,
    failCgroupV1: false,
    failSwapOn: false,
    cgroupDriver: 'cgroupfs',
    cgroupsPerQOS: false,
    enforceNodeAllocatable: [],
    makeIPTablesUtilChains: false,
    containerRuntimeEndpoint: `unix://${containerdSocket(state, name)}`,
    volumePluginDir: join(folder, 'kubelet/volume-plugins'),
    resolvConf: join(folder, 'resolv.conf'),
    podLogsDir: join(folder, 'logs'),
    tlsCertFile: credential(state, `${name}.crt`),
    tlsPrivateKeyFile: credential(state, `${name}.key`),
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: credential(state, 'ca.crt') },
    },
    authorization: { mode: 'Webhook' },
    evictionHard: {
      'memory.available': '50Mi',
      'nodefs.available': '1%',
      'nodefs.inodesFree': '1%',
      'imagefs.available': '1%',
    },
    // Nobody could fetch a removed image again.
    imageGCHighThresholdPercent: 100,
    imageMinimumGCAge: '24h',
    nodeStatusUpdateFrequency: '5s',
  };
}
