import { Registry } from 'prom-client';
import { beforeAll, expect, test } from 'vitest';
import { initialStatus } from '../../../src/http/status.ts';
import { certificateMetrics } from '../../../src/sinks/certificate-metrics.ts';
import { Authority } from '../../support/authority.ts';
import { makeRender } from '../../support/renders.ts';

const DAY_MS = 24 * 3_600_000;
let authority: Authority;

beforeAll(async () => {
  authority = await Authority.root('own');
});

const pem = async (toMs: number): Promise<string> => {
  const issued = await authority.issue({ names: ['a.example'], fromMs: -30 * DAY_MS, toMs });
  return `${issued.certificate}\n${issued.key}\n`;
};

const page = async (
  files: Readonly<Record<string, string>>,
  agentClientEnd?: () => number,
): Promise<string> => {
  const registry = new Registry();
  const render = { newest: makeRender({ files }), durationMs: 1 };
  const status = { ...initialStatus('2026-01-01T00:00:00Z'), render };
  const sources = { status: () => status, now: Date.now };
  certificateMetrics(registry, {
    ...sources,
    ...(agentClientEnd !== undefined && { agentClientEnd }),
  });
  return registry.metrics();
};

test('S23: the soonest end of all served certificates is told, and how many are near theirs', async () => {
  const text = await page({
    'certs/a.pem': await pem(60 * DAY_MS),
    'certs/b.pem': await pem(13 * DAY_MS),
    'certs/c.pem': await pem(-DAY_MS),
    'certs/d.pem': 'no certificate',
    'maps/hosts.map': 'a b\n',
  });
  const served = /expiry_timestamp_seconds\{certificate="served"\} (\d+)\n/.exec(text)?.[1];
  expect(Math.abs(Number(served) * 1_000 - (Date.now() - DAY_MS))).toBeLessThan(60_000);
  expect(text).toContain('haptic_served_certificates{state="valid"} 1\n');
  expect(text).toContain('haptic_served_certificates{state="expiring"} 1\n');
  expect(text).toContain('haptic_served_certificates{state="expired"} 1\n');
  expect(text).not.toContain('agent-client');
});

test('S23: the end of the certificate that agents see is told as it is at the scrape', async () => {
  const text = await page({}, () => 1_700_000_000_999);
  expect(text).toContain('{certificate="agent-client"} 1700000000\n');
  expect(text).not.toContain('certificate="served"');
});
