import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';

/**
 * Ends HAProxy and agent processes that a killed controller left behind on this base directory; returns their pids. They
 * are known by the base directory on their command line. Does nothing where there is no /proc.
 */
export const endOrphans = async (base: string): Promise<readonly number[]> => {
  const orphans = await orphansOf(base);
  for (const pid of orphans) signal(pid, 'SIGTERM');
  for (let waited = 0; waited < 3_000 && orphans.some(isAlive); waited += 50) await pause(50);
  for (const pid of orphans.filter(isAlive)) signal(pid, 'SIGKILL');
  return orphans;
};

const orphansOf = async (base: string): Promise<readonly number[]> => {
  const entries = await readdir('/proc').catch(() => []);
  const pids = entries.filter((entry) => /^\d+$/.test(entry)).map(Number);
  const found = await Promise.all(
    pids.map(async (pid) => ((await belongs(pid, base)) ? [pid] : [])),
  );
  return found.flat();
};

const belongs = async (pid: number, base: string): Promise<boolean> => {
  if (pid === process.pid) return false;
  const commandLine = await readFile(`/proc/${String(pid)}/cmdline`, 'utf8').catch(() => '');
  const words = commandLine.split('\0');
  const isAgent = words[words.indexOf('--base-dir') + 1] === base && words.includes('--base-dir');
  return isAgent || words.some((word) => word.startsWith(`${base}/haproxy-master.sock,`));
};

const signal = (pid: number, name: NodeJS.Signals): void => {
  try {
    process.kill(pid, name);
  } catch {
    // It ended meanwhile.
  }
};

/** Whether a process of this id runs. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};
