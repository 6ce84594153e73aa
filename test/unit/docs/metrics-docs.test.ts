import { readFileSync } from 'node:fs';
import { Registry } from 'prom-client';
import { EMPTY } from 'rxjs';
import { expect, it } from 'vitest';
import { Metrics, type MetricName } from '../../../agent/metrics.ts';
import { initialStatus } from '../../../src/http/status.ts';
import { createMetrics } from '../../../src/sinks/metrics.ts';
import { processMetrics } from '../../../src/sinks/process-metrics.ts';
import { countingWatchEvents, watchSignalMetrics } from '../../../src/sinks/watch-metrics.ts';

interface Metric {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
}

/** Rows of the tables: name, type and labels. */
const documented = (): readonly Metric[] =>
  readFileSync(new URL('../../../docs/metrics.md', import.meta.url), 'utf8')
    .split('\n')
    .flatMap((line) => {
      const [, name = '', type = '', labels = '', meaning = ''] = line
        .split('|')
        .map((cell) => cell.trim());
      if (!name.startsWith('`')) return [];
      expect(meaning, name).not.toBe('');
      const words = [...labels.matchAll(/`(\w+)`/g)].map(([, label = '']) => label);
      return [{ name: name.slice(1, -1), type, labels: words }];
    });

const registered = async (): Promise<readonly Metric[]> => {
  const registry = new Registry();
  createMetrics(registry, () => initialStatus('2026-01-01T00:00:00Z'));
  countingWatchEvents({ watch: () => EMPTY, problems$: EMPTY }, registry);
  watchSignalMetrics(registry, () => 0);
  const stop = processMetrics(registry);
  await registry.metrics();
  stop();
  return registry.getMetricsAsArray().map((metric) => {
    // Not part of the library's types, but of every one of its metrics.
    const { name, type, labelNames } = metric as unknown as {
      name: string;
      type: string;
      labelNames: string[];
    };
    return { name, type, labels: labelNames };
  });
};

/** The agent's, read from its own page; a value for each makes it show its label. */
const ofAgent = (): readonly Metric[] => {
  const metrics = new Metrics();
  const names = [...metrics.text().matchAll(/^# TYPE (\S+) /gm)].map(([, name = '']) => name);
  for (const name of names) metrics.count(name as MetricName, 'some');
  const text = metrics.text();
  return names.map((name) => {
    const type = new RegExp(`^# TYPE ${name} (\\w+)$`, 'm').exec(text)?.[1] ?? '';
    const label = new RegExp(`^${name}\\{(\\w+)=`, 'm').exec(text)?.[1];
    return { name, type, labels: label === undefined ? [] : [label] };
  });
};

const byName = (left: Metric, right: Metric): number => (left.name < right.name ? -1 : 1);

it('S23: docs/metrics.md lists every metric with its type and labels, and no other', async () => {
  const there = [...(await registered()), ...ofAgent()];
  expect(documented().toSorted(byName)).toStrictEqual(there.toSorted(byName));
});

it('S23: names follow the conventions', async () => {
  for (const { name, type, labels } of [...(await registered()), ...ofAgent()]) {
    // Prometheus gives these to summaries and histograms.
    expect(
      ['le', 'quantile'].filter((label) => labels.includes(label)),
      name,
    ).toStrictEqual([]);
    expect(name).toMatch(/^(?:haptic|process)_[a-z_]+$/);
    expect(name.endsWith('_total'), name).toBe(type === 'counter');
  }
});
