import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { contentsBelow } from './haproxy/contents.ts';
import { DeleteQueue } from './haproxy/deletes.ts';
import { Executor } from './haproxy/execute.ts';
import { emptyHolding, type Holding } from './apply/holding.ts';
import { KnownBad } from './apply/known-bad.ts';
import type { Log } from './log.ts';
import { Master } from './haproxy/master.ts';
import { Metrics } from './metrics.ts';
import { Mutex } from './mutex.ts';
import type { AgentOptions } from './options.ts';
import { Plans } from './apply/plans.ts';
import { CertificateWatch } from './drift/certificates.ts';
import { WorkerImage } from './drift/worker-image.ts';
import { ReadBack } from './haproxy/read-back.ts';
import { Storage } from './files/storage.ts';
import { Workshop } from './files/transition.ts';
import { Tree } from './files/tree.ts';
import { Worker } from './haproxy/worker.ts';

/** Everything that belongs to the one pod an agent looks after; made once, handed to every part. */
export interface Pod {
  readonly options: AgentOptions;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Guards the holding, the tree, the worker and the master. */
  readonly lock: Mutex;
  readonly holding: Holding;
  readonly tree: Tree;
  readonly workshop: Workshop;
  readonly storage: Storage;
  readonly plans: Plans;
  readonly worker: Worker;
  readonly master: Master;
  readonly deletes: DeleteQueue;
  readonly executor: Executor;
  readonly readBack: ReadBack;
  readonly image: WorkerImage;
  readonly certificates: CertificateWatch;
  readonly knownBad: KnownBad;
}

const FOLDER = '.haptic';

/** Makes the parts of a pod; reads nothing yet (see recovery.ts). */
export async function createPod(options: AgentOptions, log: Log): Promise<Pod> {
  const folder = join(options.baseDir, FOLDER);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const worker = new Worker(options.workerSocket, options.baseDir);
  const deletes = new DeleteQueue();
  return {
    options,
    log,
    metrics: new Metrics(),
    lock: new Mutex(),
    holding: emptyHolding(),
    tree: new Tree(options.baseDir, options.config),
    workshop: new Workshop(folder),
    storage: new Storage(options.stateFile, folder),
    plans: new Plans(folder),
    worker,
    master: new Master(options.masterSocket),
    deletes,
    executor: new Executor({ worker, deletes, read: contentsBelow(options.baseDir) }),
    readBack: new ReadBack(),
    image: new WorkerImage(),
    certificates: new CertificateWatch(),
    knownBad: new KnownBad(),
  };
}

/** Writes down what the pod holds, and only then forgets what going back would have needed. */
export async function persist(pod: Pod): Promise<void> {
  const { holding, tree, workshop, plans, deletes, storage } = pod;
  await storage.save(holding, tree, deletes.names());
  holding.unsaved = false;
  await workshop.remove();
  await workshop.objects.retain(holding.lkgDelta.values());
  await plans.retain([holding.running, holding.applied, holding.pending?.planId ?? null]);
}

/** The tree on disk is the one to go back to from now on; not when somebody else has changed it. */
export function promote(pod: Pod): void {
  const { holding, tree } = pod;
  if (holding.applied === null || !tree.intact) return;
  holding.confirmed = true;
  holding.lkg = holding.applied;
  holding.lkgDelta.clear();
  holding.generation += 1;
}
