import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, Gauge, type Registry } from 'prom-client';

/** How often the event loop is looked at, in milliseconds. */
const RESOLUTION_MS = 10;
const PERCENTILES = [50, 99, 100];

/**
 * Registers what the process is like: event-loop delay since the last scrape, memory, processor time, start. Returns how
 * to stop looking at the event loop.
 */
export const processMetrics = (registry: Registry): (() => void) => {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  new Gauge({
    name: 'haptic_event_loop_delay_seconds',
    help: 'Delay of the event loop since the last scrape.',
    labelNames: ['percentile'],
    registers: [registry],
    collect() {
      for (const percentile of PERCENTILES) {
        // What is measured contains the interval itself.
        const late = delay.percentile(percentile) / 1e6 - RESOLUTION_MS;
        this.set({ percentile: String(percentile) }, Math.max(0, late) / 1_000);
      }
      delay.reset();
    },
  });
  new Gauge({
    name: 'process_resident_memory_bytes',
    help: 'Resident memory of the controller.',
    registers: [registry],
    collect() {
      this.set(process.memoryUsage.rss());
    },
  });
  new Counter({
    name: 'process_cpu_seconds_total',
    help: 'Processor time of the controller, user and system.',
    registers: [registry],
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) / 1e6);
    },
  });
  new Gauge({
    name: 'process_start_time_seconds',
    help: 'Start of the controller in seconds since 1970.',
    registers: [registry],
  }).set(Math.round(performance.timeOrigin) / 1_000);
  return () => {
    delay.disable();
  };
};
