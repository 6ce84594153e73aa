import type { IncomingMessage, RequestListener, Server } from 'node:http';
import type { Log } from '../log.ts';
import type { Metrics } from '../metrics.ts';

/** Who may speak with the agent: asked before anything is done for a request. */
export interface Guard {
  readonly createServer: (listener: RequestListener) => Server;
  /** Why the request is refused; `undefined`: it is not. */
  readonly refusal: (request: IncomingMessage) => string | undefined;
  /** Whether the connection should end with this answer, because its credentials have been replaced. */
  readonly isOutdated: (request: IncomingMessage) => boolean;
  readonly close: () => void;
}

/** Where refusals and rotations are told. */
export interface GuardReports {
  readonly log: Log;
  readonly metrics: Metrics;
}
