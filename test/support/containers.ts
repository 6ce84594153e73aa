/** Processes of containers on the test cluster, whose kernel is that of the tests. */
import { readdirSync, readFileSync } from 'node:fs';
import type { ContainerStatus, PodObject } from './installation.ts';

/** A container of a pod, a sidecar too. @throws when there is none of this name, or it has not started */
export const containerOf = (pod: PodObject, name: string): Required<ContainerStatus> => {
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status;
  const status = [...containerStatuses, ...initContainerStatuses].find((one) => one.name === name);
  if (status?.containerID === undefined) {
    throw new Error(`container ${name} of pod ${pod.metadata.name} has not started`);
  }
  return { ...status, containerID: status.containerID };
};

/**
 * Sends a signal to the first process of a container, past its kubelet.
 *
 * @throws when the container does not run, or on a cluster that is not on this machine
 */
export const signalContainer = (pod: PodObject, name: string, signal: NodeJS.Signals): void => {
  const { containerID } = containerOf(pod, name);
  const id = containerID.slice(containerID.lastIndexOf('/') + 1);
  const pid = readdirSync('/proc').find((entry) => /^\d+$/.test(entry) && isFirstOf(id, entry));
  if (pid === undefined) throw new Error(`no process of container ${name} (${id}) runs here`);
  process.kill(Number(pid), signal);
};

const isFirstOf = (id: string, pid: string): boolean => {
  try {
    if (!readFileSync(`/proc/${pid}/cgroup`, 'utf8').includes(id)) return false;
    // Its process ids from this namespace to the innermost one.
    const ids = /^NSpid:\s*(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return ids?.split(/\s+/).at(-1) === '1';
  } catch {
    return false; // it has ended meanwhile
  }
};
