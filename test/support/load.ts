/** Steady traffic of a client, for tests that say what nobody may notice. */
import { Agent, type Dispatcher, request } from 'undici';

/** Where the traffic goes. */
export interface LoadOptions {
  /** Address that Service or pod is reached at, for example `http://10.97.0.2`. */
  readonly url: string;
  /** Host header. */
  readonly host: string;
  /** Requests a second, half of them on connections of their own. Default 40. */
  readonly perSecond?: number;
}

/** What came of it. */
export interface LoadReport {
  readonly requests: number;
  /** Everything that was not answered with 200: when, in milliseconds from the start, and what instead. */
  readonly failures: readonly string[];
  /** Names of the pods that answered. */
  readonly pods: ReadonlySet<string>;
}

const TIMEOUT_MS = 10_000;

/** Traffic from now on until {@link Load.stop}. */
export class Load {
  readonly #options: LoadOptions;
  readonly #started = performance.now();
  readonly #kept = new Agent({ connections: 8, pipelining: 1 });
  readonly #open = new Set<Promise<void>>();
  readonly #failures: string[] = [];
  readonly #pods = new Set<string>();
  readonly #timer: NodeJS.Timeout;
  #requests = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#ask(), 1_000 / (options.perSecond ?? 40));
  }

  /** Names of the pods that have answered so far. */
  get pods(): ReadonlySet<string> {
    return this.#pods;
  }

  /** Waits for what is on its way. */
  async stop(): Promise<LoadReport> {
    clearInterval(this.#timer);
    await Promise.all(this.#open);
    await this.#kept.close();
    return { requests: this.#requests, failures: this.#failures, pods: this.#pods };
  }

  #ask(): void {
    const at = Math.round(performance.now() - this.#started);
    const isFresh = this.#requests++ % 2 === 0;
    const asked = (isFresh ? this.#fresh() : this.#one(this.#kept))
      .catch((error: unknown) => {
        this.#failures.push(`${at} ms: ${error instanceof Error ? error.message : String(error)}`);
      })
      .finally(() => this.#open.delete(asked));
    this.#open.add(asked);
  }

  async #fresh(): Promise<void> {
    const agent = new Agent({ connections: 1 });
    await this.#one(agent).finally(() => agent.close());
  }

  async #one(dispatcher: Dispatcher): Promise<void> {
    const { url, host } = this.#options;
    const { statusCode, body } = await request(url, {
      dispatcher,
      headers: { host },
      headersTimeout: TIMEOUT_MS,
      bodyTimeout: TIMEOUT_MS,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`status ${statusCode}`);
    this.#pods.add((JSON.parse(text) as { readonly pod: string }).pod);
  }
}
