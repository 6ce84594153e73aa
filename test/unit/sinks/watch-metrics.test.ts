import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { KubeError } from '../../../src/kube/client.ts';
import { watchSignalMetrics } from '../../../src/sinks/watch-metrics.ts';
import type { WatchSignal } from '../../../src/streams/list-watch.ts';

it('S23: lists, restarts by cause and the longest silence are told for each resource', async () => {
  const registry = new Registry();
  let now = 0;
  const record = watchSignalMetrics(registry, () => now);
  const shop = { resource: 'secrets', namespace: 'shop' };
  const blog = { resource: 'secrets', namespace: 'blog' };
  const failed = (code: KubeError['code']): WatchSignal => ({
    type: 'Failed',
    verb: 'watch',
    error: new KubeError(code, 'so it is'),
    attempt: 1,
    delayMs: 500,
  });
  record(shop, { type: 'Listing' });
  record(blog, { type: 'Listing' });
  record(shop, { type: 'Received' });
  now = 5_000;
  record(blog, { type: 'Received' });
  record(shop, failed('gone'));
  record(shop, failed('timeout'));
  record(blog, { type: 'Closed' });
  now = 6_500;
  const text = await registry.metrics();
  expect(text).toContain('haptic_watch_lists_total{resource="secrets"} 2');
  expect(text).toContain('haptic_watch_restarts_total{resource="secrets",cause="gone"} 1');
  expect(text).toContain('haptic_watch_restarts_total{resource="secrets",cause="timeout"} 1');
  expect(text).toContain('haptic_watch_restarts_total{resource="secrets",cause="closed"} 1');
  expect(text).toContain('haptic_watch_silence_seconds{resource="secrets"} 6.5');
  record(shop, { type: 'Stopped' });
  expect(await registry.metrics()).toContain(
    'haptic_watch_silence_seconds{resource="secrets"} 1.5',
  );
  record(blog, { type: 'Stopped' });
  expect(await registry.metrics()).not.toContain('haptic_watch_silence_seconds{');
});
