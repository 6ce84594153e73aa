import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rendered } from '../support/chart.ts';
import { queriesOf, rulesOf } from '../support/chart-monitoring.ts';
import { providePackages } from './harness/packages.ts';
import { type Outcome, run } from './harness/run.ts';

/** A series of the release, by its name and labels, and what it is every minute for two hours. */
type Series = readonly [name: string, labels: string, values: string];

const always = (value: number): string => `${value}x120`;
/** One more each minute. */
const GROWING = '0+1x120';
/** A day from the beginning of the test's time. */
const TOMORROW = 86_400;
const FAR = 1e10;

const LEADER: Series = ['haptic_leader', 'instance="a"', always(1)];

/** What makes each alert fire. */
const CAUSES: Readonly<Record<string, readonly Series[]>> = {
  HapticNoLeader: [['haptic_leader', 'instance="a"', always(0)]],
  HapticSeveralLeaders: [LEADER, ['haptic_leader', 'instance="b"', always(1)]],
  HapticLeaderChanges: [['haptic_leader_transitions_total', '', GROWING]],
  HapticWatchNotSynced: [['haptic_watch_synced', '', always(0)]],
  HapticConfigRefused: [['haptic_config_refused_total', '', GROWING]],
  HapticRenderFailures: [['haptic_render_failures_total', 'phase="template"', GROWING]],
  HapticGateHolding: [['haptic_gate_state', '', always(1)]],
  HapticGatePinned: [['haptic_gate_state', '', always(2)]],
  HapticObjectsQuarantined: [['haptic_quarantined_objects', 'instead="nothing"', always(2)]],
  HapticApplyFailures: [['haptic_apply_failures_total', 'cause="rejected"', GROWING]],
  HapticPodsNotConverged: [
    LEADER,
    ['haptic_agents', 'instance="a", state="unconfirmed"', always(1)],
  ],
  HapticNoPods: [
    LEADER,
    ['haptic_agents', 'instance="a", state="confirmed"', always(0)],
    ['haptic_agents', 'instance="a", state="unconfirmed"', always(0)],
  ],
  HapticAgentDown: [['up', 'endpoint="agent-metrics"', always(0)]],
  HapticReloadFailures: [['haptic_agent_reloads_total', 'result="failed"', GROWING]],
  HapticDriftFound: [['haptic_agent_drift_found_total', 'kind="file"', GROWING]],
  HapticManyWorkers: [['haptic_agent_workers', '', always(9)]],
  HapticCertificateExpiresSoon: [
    ['haptic_agent_certificate_expiry_timestamp_seconds', '', always(TOMORROW)],
  ],
  HapticServedCertificateExpiresSoon: [
    ['haptic_certificate_expiry_timestamp_seconds', 'certificate="served"', always(TOMORROW)],
  ],
  HapticAgentRefusesConnections: [
    ['haptic_agent_refused_connections_total', 'reason="expired"', GROWING],
  ],
  HapticApiWritesFail: [['haptic_api_writes_total', 'kind="Event", outcome="forbidden"', GROWING]],
  HapticWatchSilent: [['haptic_watch_silence_seconds', 'resource="services"', always(400)]],
  HapticEventLoopSlow: [['haptic_event_loop_delay_seconds', 'percentile="99"', always(2)]],
};

/** An installation that is well, busy with what belongs to its work. */
const HEALTHY: readonly Series[] = [
  LEADER,
  ['haptic_leader', 'instance="b"', always(0)],
  ['haptic_leader_transitions_total', '', always(1)],
  ['haptic_watch_synced', '', always(1)],
  ['haptic_config_refused_total', '', always(3)],
  ['haptic_render_failures_total', 'phase="template"', always(3)],
  ['haptic_gate_state', '', always(0)],
  ['haptic_quarantined_objects', 'instead="nothing"', always(0)],
  ['haptic_apply_failures_total', 'cause="unreachable"', always(3)],
  ['haptic_agents', 'instance="a", state="confirmed"', always(2)],
  ['haptic_agents', 'instance="a", state="unconfirmed"', always(0)],
  // A follower knows no pod.
  ['haptic_agents', 'instance="b", state="confirmed"', always(0)],
  ['up', 'endpoint="agent-metrics"', always(1)],
  ['haptic_agent_reloads_total', 'result="ok"', GROWING],
  ['haptic_agent_drift_found_total', 'kind="worker"', GROWING],
  ['haptic_agent_workers', '', always(2)],
  ['haptic_agent_certificate_expiry_timestamp_seconds', '', always(FAR)],
  ['haptic_certificate_expiry_timestamp_seconds', 'certificate="agent-client"', always(FAR)],
  ['haptic_certificate_expiry_timestamp_seconds', 'certificate="served"', always(FAR)],
  ['haptic_agent_refused_connections_total', 'reason="not-tls"', GROWING],
  ['haptic_api_writes_total', 'kind="Event", outcome="withheld"', GROWING],
  ['haptic_watch_silence_seconds', 'resource="services"', always(60)],
  ['haptic_event_loop_delay_seconds', 'percentile="99"', always(0.02)],
];

const folder = mkdtempSync(join(tmpdir(), 'haptic-alerts-'));
const rulesFile = join(folder, 'rules.json');
let alerts: readonly string[] = [];

const promtool = async (...args: readonly string[]): Promise<Outcome> =>
  run([join((await providePackages()).root, 'usr/bin/promtool'), ...args], { cwd: folder });

beforeAll(async () => {
  const set = { 'monitoring.prometheusRule.disabledAlerts': [] };
  const objects = await rendered({ values: 'cert-manager', set });
  const rules = rulesOf(objects);
  alerts = rules.map(({ alert }) => alert);
  const queries = queriesOf(objects).map((expr, n) => ({
    record: `query:${n}`,
    expr: expr.replaceAll('$__rate_interval', '5m'),
  }));
  const groups = [
    { name: 'haptic', rules },
    { name: 'queries', rules: queries },
  ];
  writeFileSync(rulesFile, JSON.stringify({ groups }));
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** Runs Prometheus over series and compares the number that a query gives after an hour and a half. */
const counts = async (series: readonly Series[], expr: string, value: number): Promise<Outcome> => {
  const input = series.map(([name, labels, values]) => ({
    series: `${name}{namespace="haptic", pod="haptic-0"${labels === '' ? '' : `, ${labels}`}}`,
    values,
  }));
  const expected = { expr, eval_time: '90m', exp_samples: [{ labels: '{}', value }] };
  const file = join(folder, 'test.json');
  const tests = [{ interval: '1m', input_series: input, promql_expr_test: [expected] }];
  writeFileSync(
    file,
    JSON.stringify({ rule_files: [rulesFile], evaluation_interval: '1m', tests }),
  );
  return promtool('test', 'rules', file);
};

test('rules and the queries of the dashboard are what Prometheus understands', async () => {
  const outcome = await promtool('check', 'rules', rulesFile);
  expect(outcome.status, outcome.stdout + outcome.stderr).toBe(0);
  expect(outcome.stdout).toMatch(/SUCCESS: \d\d rules found/);
});

test('there is a cause for every alert', () => {
  expect(Object.keys(CAUSES)).toStrictEqual(alerts);
});

test.each(Object.entries(CAUSES))('%s fires when there is a cause', async (alert, series) => {
  const firing = `count(ALERTS{alertname="${alert}", alertstate="firing"})`;
  const outcome = await counts(series, firing, 1);
  expect(outcome.status, outcome.stdout + outcome.stderr).toBe(0);
});

test('no alert fires, and none is pending, when all is well', async () => {
  const outcome = await counts(HEALTHY, 'count(ALERTS) or vector(0)', 0);
  expect(outcome.status, outcome.stdout + outcome.stderr).toBe(0);
});
