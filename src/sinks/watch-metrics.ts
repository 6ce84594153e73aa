import { Counter, type Registry } from 'prom-client';
import { tap } from 'rxjs';
import type { ResourceSource } from '../ports.ts';

/**
 * The same source, with every event of its watches counted as `haptic_watch_events_total` by the watched resource's name and
 * the kind of event: `replaced`, `upserted` or `deleted`.
 */
export const countingWatchEvents = (source: ResourceSource, registry: Registry): ResourceSource => {
  const events = new Counter({
    name: 'haptic_watch_events_total',
    help: 'Events of watches.',
    labelNames: ['resource', 'type'],
    registers: [registry],
  });
  return {
    ...source,
    watch: (resource) =>
      source.watch(resource).pipe(
        tap(({ type }) => {
          events.inc({ resource: resource.name, type: type.toLowerCase() });
        }),
      ),
  };
};
