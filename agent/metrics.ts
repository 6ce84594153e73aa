import { REFUSAL_REASONS } from './http/refusal-reasons.ts';

/** A family of counters or gauges of the agent. Label values come from closed sets only. */
interface Family {
  readonly type: 'counter' | 'gauge';
  readonly help: string;
  readonly label?: string;
  /** Values of the label that there is a series for from the start, so that the first increase is seen as one. */
  readonly values?: readonly string[];
}

const FAMILIES = {
  haptic_agent_applies_total: {
    type: 'counter',
    help: 'Applies by outcome; conflict and bad-request changed nothing.',
    label: 'outcome',
  },
  haptic_agent_operations_total: {
    type: 'counter',
    help: 'Runtime operations by result.',
    label: 'result',
    values: ['ok', 'failed'],
  },
  haptic_agent_reloads_total: {
    type: 'counter',
    help: 'Reloads by result.',
    label: 'result',
    values: ['ok', 'failed'],
  },
  haptic_agent_rollbacks_total: {
    type: 'counter',
    help: 'Times the files went back, to the tree before an apply or to the last known good one.',
    label: 'to',
    values: ['previous', 'lkg'],
  },
  haptic_agent_drift_found_total: {
    type: 'counter',
    help: 'Files, permissions, workers, or servers and maps of a worker, that were not as the agent left them.',
    label: 'kind',
    values: ['file', 'mode', 'worker', 'runtime'],
  },
  haptic_agent_drift_repaired_total: {
    type: 'counter',
    help: 'Permissions, servers and map entries that a verification set right without a reload.',
    label: 'kind',
    values: ['mode', 'runtime'],
  },
  haptic_agent_unverified_total: {
    type: 'counter',
    help: 'Servers and map entries that were changed and not compared with what the worker says.',
  },
  haptic_agent_reload_seconds_total: {
    type: 'counter',
    help: 'Time spent in reloads.',
  },
  haptic_agent_workers: {
    type: 'gauge',
    help: 'Workers of HAProxy, the old ones included.',
  },
  haptic_agent_pending_deletes: {
    type: 'gauge',
    help: 'Servers that wait for their last connections before they are deleted.',
  },
  haptic_agent_pending_reload: { type: 'gauge', help: '1 while a reload is scheduled.' },
  haptic_agent_certificate_expiry_timestamp_seconds: {
    type: 'gauge',
    help: 'End of the certificate that the agent shows, in seconds since 1970; none without TLS.',
  },
  haptic_agent_refused_connections_total: {
    type: 'counter',
    help: 'Connections and requests that were refused before anything was done for them.',
    label: 'reason',
    values: REFUSAL_REASONS,
  },
  haptic_agent_resident_memory_bytes: { type: 'gauge', help: 'Memory of the agent.' },
} as const satisfies Readonly<Record<string, Family>>;

export type MetricName = keyof typeof FAMILIES;

/** Counters and gauges in the Prometheus text format. */
export class Metrics {
  readonly #values = new Map<MetricName, Map<string, number>>();

  constructor() {
    for (const [name, family] of Object.entries<Family>(FAMILIES)) {
      const { type, label, values = [] } = family;
      if (type !== 'counter') continue;
      for (const value of label === undefined ? [''] : values) {
        this.count(name as MetricName, value, 0);
      }
    }
  }

  count(name: MetricName, label = '', by = 1): void {
    const series = this.#series(name);
    series.set(label, (series.get(label) ?? 0) + by);
  }

  set(name: MetricName, value: number): void {
    this.#series(name).set('', value);
  }

  /** The whole page of `GET /metrics`. */
  text(): string {
    return Object.entries<Family>(FAMILIES)
      .map(([name, family]) => this.#family(name as MetricName, family))
      .join('');
  }

  #family(name: MetricName, { type, help, label }: Family): string {
    const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
    for (const [value, number] of this.#series(name)) {
      lines.push(
        label === undefined ? `${name} ${number}` : `${name}{${label}="${value}"} ${number}`,
      );
    }
    return `${lines.join('\n')}\n`;
  }

  #series(name: MetricName): Map<string, number> {
    const series = this.#values.get(name) ?? new Map<string, number>();
    this.#values.set(name, series);
    return series;
  }
}
