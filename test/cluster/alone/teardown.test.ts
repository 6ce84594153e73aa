/** The harness itself, on a second cluster beside the one that the tests run on. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { cluster } from '../../support/cluster.ts';
import { waitFor } from '../../support/haproxy.ts';
import { listMachines, readProcesses } from '../harness/machine.ts';
import { stateFolder } from '../harness/places.ts';

const PARENT = `/var/lib/haptic-test-${process.pid}`;
const STATE = stateFolder(PARENT);
const HARNESS = fileURLToPath(new URL('../harness/main.ts', import.meta.url));
const { run, images } = cluster();
const env = { ...process.env, HAPTIC_CLUSTER_STATE: PARENT };

async function harness(...args: string[]): Promise<string> {
  const command = [process.execPath, HARNESS, ...args] as const;
  const { status, stdout, stderr } = await run(command, { env, timeoutMs: 240_000 });
  expect(status, stderr).toBe(0);
  return stdout;
}

/** Starts the cluster and kills the harness as soon as a node has its containerd. */
async function crashHalfway(): Promise<void> {
  const child = spawn(process.execPath, [HARNESS, 'up'], { env, stdio: 'ignore' });
  const socket = join(STATE, 'node-0/containerd.sock');
  await waitFor(async () => existsSync(socket), { timeoutMs: 120_000, what: socket });
  child.kill('SIGKILL');
}

/** Every process by its process-id namespace: each container has one, and so has each machine. */
function namespaces(): { readonly pid: number; readonly namespace: string }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        return [{ pid: Number(name), namespace: readlinkSync(`/proc/${name}/ns/pid`) }];
      } catch {
        return []; // it has ended meanwhile
      }
    });
}

/** The process-id namespaces of the machines of a cluster and of everything that they started. */
function namespacesOf(state: string): Set<string> {
  const inside = new Set(listMachines(state).map(({ pid }) => pid));
  for (let size = 0; size !== inside.size;) {
    size = inside.size;
    for (const { pid, parent } of readProcesses()) if (inside.has(parent)) inside.add(pid);
  }
  return new Set(namespaces().flatMap(({ pid, namespace }) => (inside.has(pid) ? namespace : [])));
}

/** Everything that should not be there after a cluster has ended, in words. */
function traces(): string[] {
  const groups = readdirSync('/sys/fs/cgroup').map((controller) => {
    return join('/sys/fs/cgroup', controller, 'haptic', basename(STATE));
  });
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  return [
    ...[STATE, dirname(STATE)].filter((path) => existsSync(path)),
    ...groups.filter((path) => existsSync(path)),
    ...mounts.filter((line) => line.includes(STATE)),
    ...listMachines(STATE).map(({ name }) => `the machine ${name}`),
  ];
}

afterAll(async () => {
  await harness('down');
});

test('a cluster whose start was interrupted is cleared away by the next one', async () => {
  await crashHalfway();
  expect(listMachines(STATE)).not.toHaveLength(0);
  await harness('up');
  expect(await harness('status')).toMatch(/^up\n/);
});

test('a cluster with pods leaves no process, mount, namespace or control group behind', async () => {
  const pod = ['run', 'echo', '--restart=Never', `--image=${images['echo']}`];
  await harness('kubectl', ...pod);
  await harness('kubectl', 'wait', '--for=condition=Ready', 'pod/echo', '--timeout=60s');
  const used = namespacesOf(STATE);
  // Three machines, two clients, and at least the pod with its pause container.
  expect(used.size).toBeGreaterThanOrEqual(7);
  await harness('down');
  expect(traces()).toEqual([]);
  expect(namespaces().filter(({ namespace }) => used.has(namespace))).toEqual([]);
});
