import { mkdir } from 'node:fs/promises';
import { ReplaySubject } from 'rxjs';
import { inClusterAccess, type KubeAccess } from '../kube/kube-access.ts';
import { createAgentTls } from '../sinks/agent-tls.ts';
import { loadLibraries } from '../streams/libraries.ts';
import { CommandError, EXIT, type Call, type Command } from './command.ts';
import { findHaproxy } from './haproxy-binary.ts';
import { type ClusterSettings, inCluster } from './in-cluster.ts';
import { createLogger, writeLine } from './logger.ts';
import { librariesDirectory } from './programs.ts';
import { RUN_OPTIONS, runSettings } from './run-settings.ts';

export const run: Command = {
  name: 'run',
  arguments: [],
  summary: 'Run the controller of a fleet in a Kubernetes cluster',
  details:
    'Inside a pod it uses the service account of the pod, elsewhere $KUBECONFIG. Replicas elect a leader by a Lease; the others\nare warm. SIGTERM ends in order: what is in flight ends, and the Lease is given back.',
  options: RUN_OPTIONS,
  run: async (call) => serve(await prepare(call)),
};

const prepare = async (call: Call): Promise<ClusterSettings> => {
  const flags = runSettings(call);
  const { environment, signal } = call.terminal;
  const logger = createLogger(flags.logLevel, false);
  const named = call.values['haproxy'];
  const haproxy = await findHaproxy(typeof named === 'string' ? named : undefined, environment);
  await mkdir(flags.workDir, { recursive: true, mode: 0o700 }).catch(cannot('use --work-dir'));
  const loaded = await loadLibraries(librariesDirectory());
  if (!loaded.ok) {
    const [problem] = loaded.problems;
    throw new CommandError(`the template libraries cannot be used: ${problem?.message ?? ''}`);
  }
  const access = await accessIn(environment);
  const agentTls = await createAgentTls({
    ...flags.agentTls,
    onProblem: (message) => {
      const fields = { dir: flags.agentTls.dir };
      writeLine(logger, { level: 'error', message: `agent credentials: ${message}`, fields });
    },
  }).catch(cannot('use --agent-tls-dir'));
  const shutdown$ = new ReplaySubject<unknown>(1);
  const end = (): void => {
    shutdown$.next(signal.reason);
  };
  if (signal.aborted) end();
  else signal.addEventListener('abort', end, { once: true });
  const { identity, namespace, config } = flags;
  writeLine(logger, {
    level: 'info',
    message: `controller ${identity} starts in namespace ${namespace}`,
    fields: { identity, namespace, config, haproxy, server: access.server },
  });
  return { flags, access, agentTls, haproxy, libraries: loaded.libraries, logger, shutdown$ };
};

/** As the service account of this pod, else as the kubeconfig says; only then its 80 MB of library are loaded. */
const accessIn = async (environment: Call['terminal']['environment']): Promise<KubeAccess> => {
  const ofPod = await inClusterAccess(environment);
  if (ofPod !== undefined) return ofPod;
  const { kubeConfigAccess } = await import('../kube/kube-config.ts');
  return Promise.try(kubeConfigAccess, {}).catch(cannot('reach a cluster'));
};

const cannot =
  (what: string) =>
  (error: unknown): never => {
    const why = error instanceof Error ? error.message : String(error);
    throw new CommandError(`cannot ${what}: ${why}`, undefined, { cause: error });
  };

const serve = (settings: ClusterSettings): Promise<number> =>
  new Promise((done, fail) => {
    inCluster(settings).subscribe({
      error: fail,
      complete: () => {
        done(EXIT.good);
      },
    });
  });
