import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { named, NAMESPACE, present, type Rendered, rendered } from '../support/chart.ts';
import { bootstrapped } from '../support/chart-bootstrap.ts';
import { panelsOf, queriesOf, rulesOf } from '../support/chart-monitoring.ts';

const DOCS = fileURLToPath(new URL('../../docs', import.meta.url));

const monitoring = (): Promise<readonly Rendered[]> => rendered({ values: 'cert-manager' });

interface Metric {
  readonly labels: readonly string[];
  readonly isHistogram: boolean;
  /** What the page says of it. */
  readonly row: string;
}

/** docs/metrics.md, which other tests compare with what the programs register. */
const documented = (): ReadonlyMap<string, Metric> =>
  new Map(
    readFileSync(join(DOCS, 'metrics.md'), 'utf8')
      .split('\n')
      .flatMap((row) => {
        const [, name = '', type = '', labels = ''] = row.split('|').map((cell) => cell.trim());
        if (!name.startsWith('`')) return [];
        const words = [...labels.matchAll(/`(\w+)`/g)].map(([, label = '']) => label);
        return [[name.slice(1, -1), { labels: words, isHistogram: type === 'histogram', row }]];
      }),
  );

/** Labels that a scrape adds. */
const SCRAPED = ['namespace', 'instance', 'pod', 'endpoint', 'le'];

/** Each metric of a query with its matchers. */
const selectors = (expr: string) =>
  [...expr.matchAll(/\b((?:haptic|process|haproxy)_\w+|up)\b(?:\{([^}]*)\})?/g)].map(
    ([, name = '', inner = '']) => ({
      name,
      matchers: [...inner.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"/g)].map(
        ([, label = '', value = '']) => ({ label, values: value.split('|') }),
      ),
    }),
  );

const grouped = (expr: string): readonly string[] =>
  [...expr.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, labels = '']) => labels.split(', '));

/** Compares a selector of one of our metrics with the page. @returns the metric's labels */
const checked = (
  { name, matchers }: ReturnType<typeof selectors>[number],
  ours: ReadonlyMap<string, Metric>,
  expr: string,
): readonly string[] => {
  if (name === 'up') return [];
  const metric = present(ours.get(name.replace(/_bucket$/, '')), `${name} of ${expr}`);
  expect(name.endsWith('_bucket'), expr).toBe(metric.isHistogram);
  for (const { label, values } of matchers.filter((one) => !SCRAPED.includes(one.label))) {
    expect(metric.labels, expr).toContain(label);
    for (const value of values) expect(metric.row, expr).toContain(`\`${value}\``);
  }
  return metric.labels;
};

describe('queries', () => {
  test('S23: use metrics, labels and values that docs/metrics.md or HAProxy itself names', async () => {
    const objects = await monitoring();
    const ours = documented();
    const { metrics: theirs } = await bootstrapped(objects, '3.0');
    const queries = [...rulesOf(objects).map(({ expr }) => expr), ...queriesOf(objects)];
    expect(queries.length).toBeGreaterThan(50);
    for (const expr of queries) {
      const found = selectors(expr);
      expect(found.length, expr).toBeGreaterThan(0);
      const labels = found.flatMap((selector) =>
        selector.name.startsWith('haproxy_')
          ? present(theirs[selector.name], `${selector.name} of ${expr}`)
          : checked(selector, ours, expr),
      );
      for (const label of grouped(expr)) expect([...labels, ...SCRAPED], expr).toContain(label);
    }
  });

  test('are about this release alone', async () => {
    const objects = await monitoring();
    const all = [
      ...rulesOf(objects).map(({ expr }) => ({ expr, namespace: NAMESPACE })),
      ...queriesOf(objects).map((expr) => ({ expr, namespace: '$namespace' })),
    ];
    for (const { expr, namespace } of all) {
      for (const { name, matchers } of selectors(expr)) {
        const own = matchers.filter(({ label }) => label === 'namespace');
        expect(own, `${name} in ${expr}`).toStrictEqual([
          { label: 'namespace', values: [namespace] },
        ]);
      }
    }
  });
});

describe('alerts', () => {
  test('have a severity, words for people, and no place holder left', async () => {
    for (const rule of rulesOf(await monitoring())) {
      expect(rule.alert).toMatch(/^Haptic[A-Za-z]+$/);
      expect(rule.labels['severity']).toMatch(/^(?:warning|critical)$/);
      expect(Object.keys(rule.annotations).sort()).toStrictEqual(['description', 'summary']);
      expect(JSON.stringify(rule)).not.toMatch(/RELEASE_NAMESPACE|CERTIFICATE_DAYS/);
    }
  });

  test('can be left out by name', async () => {
    const set = { 'monitoring.prometheusRule.disabledAlerts': [] };
    const all = rulesOf(await rendered({ values: 'cert-manager', set })).map(({ alert }) => alert);
    const some = rulesOf(await monitoring()).map(({ alert }) => alert);
    expect(all.filter((alert) => !some.includes(alert))).toStrictEqual(['HapticLeaderChanges']);
  });

  test('are all explained in docs/operations.md, and no other is', async () => {
    const set = { 'monitoring.prometheusRule.disabledAlerts': [] };
    const alerts = rulesOf(await rendered({ values: 'cert-manager', set }));
    const page = readFileSync(join(DOCS, 'operations.md'), 'utf8');
    const explained = [...page.matchAll(/^\| `(Haptic\w+)` \| (\w+) \|/gm)].map(
      ([, alert = '', severity = '']) => ({ alert, severity }),
    );
    expect(explained).toStrictEqual(
      alerts.map(({ alert, labels }) => ({ alert, severity: labels['severity'] })),
    );
  });
});

describe('the dashboard', () => {
  test('has panels that do not overlap, each with a query', async () => {
    const panels = panelsOf(await monitoring());
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, n) => `${x + (n % w)},${y + Math.floor(n / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    for (const { type, targets = [], title } of panels) {
      expect(targets.length > 0, title).toBe(type !== 'row');
    }
  });
});

describe('scrapes', () => {
  test('name ports that the pods and Services have', async () => {
    const objects = await monitoring();
    const specOf = (kind: string): Readonly<Record<string, unknown>> =>
      present(objects.find((object) => object.kind === kind)).spec as Record<string, unknown>;
    const service = named(objects, 'Service', '-controller');
    expect(specOf('ServiceMonitor')['endpoints']).toMatchObject([
      { port: 'metrics', path: '/metrics' },
    ]);
    expect(service.spec?.ports?.map(({ name }) => name)).toContain('metrics');
    // Series for each server of each backend would be hundreds of thousands.
    expect(specOf('PodMonitor')['podMetricsEndpoints']).toMatchObject([
      { port: 'agent-metrics' },
      { port: 'stats', params: { scope: ['global', 'frontend'] } },
    ]);
    const labels = named(objects, 'Deployment', '-haproxy').spec?.template.metadata?.labels;
    expect(labels).toMatchObject(
      (specOf('PodMonitor')['selector'] as { readonly matchLabels: object }).matchLabels,
    );
  });
});
