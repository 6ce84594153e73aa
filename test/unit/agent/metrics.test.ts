import { expect, it } from 'vitest';
import { Metrics } from '../../../agent/metrics.ts';

it('S23: counters exist from the start at 0, so that Prometheus sees the first failure', () => {
  const text = new Metrics().text();
  expect(text).toContain('\nhaptic_agent_reloads_total{result="failed"} 0\n');
  expect(text).toContain('\nhaptic_agent_drift_found_total{kind="runtime"} 0\n');
  expect(text).toContain('\nhaptic_agent_refused_connections_total{reason="expired"} 0\n');
  expect(text).toContain('\nhaptic_agent_unverified_total 0\n');
});

it('shows no gauge before its value is known', () => {
  expect(new Metrics().text()).not.toMatch(/^haptic_agent_workers/m);
});
