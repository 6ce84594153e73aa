import { Agent, type Dispatcher } from 'undici';
import type { KubeTls } from './kube-access.ts';

/** Milliseconds of silence after which TCP asks whether the other side is still there. */
const KEEP_ALIVE_DELAY_MS = 15_000;

/**
 * The connections to the API server: one pool, and another one when the TLS settings have become others (a rotated client
 * certificate or authority). Requests that run on an older pool end there in their own time.
 */
export class Connections {
  #current: { readonly tls: KubeTls; readonly agent: Agent } | undefined;
  readonly #retired = new Set<Agent>();

  /** The pool for these settings. */
  for(tls: KubeTls): Dispatcher {
    const current = this.#current;
    if (current !== undefined && sameTls(current.tls, tls)) return current.agent;
    if (current !== undefined) this.#retire(current.agent);
    // One stalled HTTP/2 connection would stall every watch on it, so each watch has a connection of its own.
    const agent = new Agent({
      allowH2: false,
      pipelining: 1,
      connect: { ...tls, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_DELAY_MS },
    });
    this.#current = { tls, agent };
    return agent;
  }

  /** Ends all connections; what is in flight fails. */
  async destroy(): Promise<void> {
    const agents = [
      ...this.#retired,
      ...(this.#current === undefined ? [] : [this.#current.agent]),
    ];
    this.#retired.clear();
    this.#current = undefined;
    await Promise.all(agents.map((agent) => agent.destroy()));
  }

  #retire(agent: Agent): void {
    this.#retired.add(agent);
    const forget = (): void => void this.#retired.delete(agent);
    agent.close().then(forget, forget);
  }
}

const MEMBERS = ['ca', 'cert', 'key', 'rejectUnauthorized', 'servername'] as const;

const sameTls = (left: KubeTls, right: KubeTls): boolean =>
  MEMBERS.every((member) => String(left[member]) === String(right[member]));
