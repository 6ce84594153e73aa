/** Who held a Lease when, as a reader of the API server sees it. */
import { firstValueFrom, map } from 'rxjs';
import { getLease, type LeaseName } from '../../src/kube/lease.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { waitFor } from './haproxy.ts';

/** One state of a Lease. */
export interface LeaseMoment {
  /** When it was first seen, by `performance.now()`; at most about 50 ms late. */
  readonly at: number;
  /** Empty: nobody's. */
  readonly holder: string;
  readonly epoch: number;
}

const EVERY_MS = 25;

/** Looks at a Lease all the time, until {@link LeaseHistory.stop}. A Lease that is not there leaves no trace. */
export class LeaseHistory {
  readonly #client: KubeClient;
  readonly #lease: LeaseName;
  readonly #moments: LeaseMoment[] = [];
  #stopped = false;

  constructor(client: KubeClient, lease: LeaseName) {
    this.#client = client;
    this.#lease = lease;
    void this.#look();
  }

  /** Each state that another one followed, and the newest. */
  get moments(): readonly LeaseMoment[] {
    return this.#moments;
  }

  /** Waits for the first state since `since` that is like this. */
  until(since: number, what: string, isIt: (moment: LeaseMoment) => boolean): Promise<LeaseMoment> {
    const find = (): LeaseMoment | undefined =>
      this.#moments.find((moment) => moment.at >= since && isIt(moment));
    return waitFor(find, { timeoutMs: 120_000, what });
  }

  stop(): void {
    this.#stopped = true;
  }

  async #look(): Promise<void> {
    while (!this.#stopped) {
      const moment = await this.#read().catch(() => undefined); // what cannot be seen now can be later
      const last = this.#moments.at(-1);
      const isNew = moment?.holder !== last?.holder || moment?.epoch !== last?.epoch;
      if (moment !== undefined && isNew) this.#moments.push(moment);
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  }

  #read(): Promise<LeaseMoment | undefined> {
    return firstValueFrom(
      getLease(this.#client, this.#lease, 5_000).pipe(
        map(
          (lease) =>
            lease && { at: performance.now(), holder: lease.holder, epoch: lease.epoch ?? 0 },
        ),
      ),
      { defaultValue: undefined },
    );
  }
}
