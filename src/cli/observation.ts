import type { Logger } from 'pino';
import { Registry } from 'prom-client';
import { catchError, ignoreElements, tap } from 'rxjs';
import { type Facts, initialStatus, statusStep, type Status } from '../http/status.ts';
import type { Notification, Observer } from '../ports.ts';
import { createLog } from '../sinks/log.ts';
import { createMetrics } from '../sinks/metrics.ts';
import { processMetrics } from '../sinks/process-metrics.ts';
import { writeLine } from './logger.ts';

export interface ObservationSettings {
  readonly logger: Logger;
  /** HAProxy pods without which this process is not ready: 1 in standalone, 0 in a cluster. */
  readonly minPods: number;
  /** End of the certificate for calls to agents, in milliseconds since 1970. Absent without TLS. */
  readonly agentClientEnd?: () => number;
  /** What `/debug/vars` tells besides the status. */
  readonly facts: () => Facts;
}

/** What a running program tells about itself. */
export interface Observation {
  /** The newest status. */
  readonly status: () => Status;
  /** Folds every notification into status, metrics and log. */
  readonly observe: Observer;
  /** Where further metrics are registered. */
  readonly registry: Registry;
  /** The Prometheus exposition. */
  readonly metrics: () => Promise<string>;
  /** Ends the timers of the process metrics. */
  readonly close: () => void;
}

/** One registry, one status and one log for everything that happens. */
export const createObservation = (settings: ObservationSettings): Observation => {
  let status: Status = initialStatus(new Date().toISOString(), settings.minPods);
  const registry = new Registry();
  const read = (): Status => ({ ...status, facts: settings.facts() });
  const record = createMetrics(registry, read, settings.agentClientEnd);
  const linesOf = createLog();
  return {
    status: read,
    observe: ({ notifications$ }) =>
      notifications$.pipe(
        tap((event: Notification) => {
          status = statusStep(status, event, new Date().toISOString());
          record(event);
          for (const line of linesOf(event)) writeLine(settings.logger, line);
        }),
        // A line or number that cannot be written must not end all others, nor the readiness.
        catchError((error: unknown, again$) => {
          const why = error instanceof Error ? error.message : String(error);
          settings.logger.error({}, `an event could not be recorded: ${why}`);
          return again$;
        }),
        ignoreElements(),
      ),
    registry,
    metrics: () => registry.metrics(),
    close: processMetrics(registry),
  };
};
