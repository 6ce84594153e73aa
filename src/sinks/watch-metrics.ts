import { Counter, Gauge, type Registry } from 'prom-client';
import { tap } from 'rxjs';
import type { ResourceSource } from '../ports.ts';
import type { WatchName } from '../streams/cluster-source.ts';
import type { WatchSignal } from '../streams/list-watch.ts';

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

/**
 * Metrics of the list-watches of a cluster, by the watched resource's name; returns what is to be told of every signal
 * (`onSignal` of the cluster source). A restart counts by its cause: `closed` for an end in order, else the code of the
 * error, of which `gone` is a 410.
 *
 * @param now milliseconds of any clock that only goes forward
 */
export const watchSignalMetrics = (
  registry: Registry,
  now: () => number,
): ((watch: WatchName, signal: WatchSignal) => void) => {
  const restarts = new Counter({
    name: 'haptic_watch_restarts_total',
    help: 'Lists and watches that ended and were started again.',
    labelNames: ['resource', 'cause'],
    registers: [registry],
  });
  const lists = new Counter({
    name: 'haptic_watch_lists_total',
    help: 'Lists that were begun.',
    labelNames: ['resource'],
    registers: [registry],
  });
  const lastReceived = new Map<WatchName, number>();
  new Gauge({
    name: 'haptic_watch_silence_seconds',
    help: 'Time since the API server last sent anything.',
    labelNames: ['resource'],
    registers: [registry],
    collect() {
      this.reset();
      const longest = new Map<string, number>();
      for (const [{ resource }, at] of lastReceived) {
        const seconds = (now() - at) / 1_000;
        longest.set(resource, Math.max(longest.get(resource) ?? 0, seconds));
      }
      for (const [resource, seconds] of longest) this.set({ resource }, seconds);
    },
  });
  return (watch, signal) => {
    const { resource } = watch;
    if (signal.type === 'Listing') lists.inc({ resource });
    if (signal.type === 'Received') lastReceived.set(watch, now());
    if (signal.type === 'Closed') restarts.inc({ resource, cause: 'closed' });
    if (signal.type === 'Failed') restarts.inc({ resource, cause: signal.error.code });
    if (signal.type === 'Stopped') lastReceived.delete(watch);
  };
};
