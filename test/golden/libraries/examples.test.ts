import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { exampleConfig, exampleNames, exampleObjects } from '../../support/examples.ts';
import { snapshotFor } from '../../support/objects.ts';
import { libraryEngine, renderAll, textsOf } from '../../support/rendered.ts';

/** Run with `UPDATE_GOLDEN=1` to rewrite what is expected; then read the difference. */
const UPDATE = process.env['UPDATE_GOLDEN'] === '1';
const EXPECTED = join(import.meta.dirname, 'expected');

const PEM = ['CERTIFICATE', 'PRIVATE KEY']
  .map((what) => `-----BEGIN ${what}-----\nAAAA\n-----END ${what}-----\n`)
  .join('');

const expectGolden = (name: string, text: string): void => {
  const path = join(EXPECTED, name);
  if (UPDATE) writeFileSync(path, text);
  expect(existsSync(path)).toBe(true);
  expect(text).toBe(readFileSync(path, 'utf8'));
};

const rendered = async (name: string): Promise<Readonly<Record<string, string>>> => {
  const config = exampleConfig(name);
  const engine = await libraryEngine({
    ...(config === undefined ? {} : { config }),
    defaultPem: PEM,
  });
  const render = renderAll(engine, snapshotFor(engine.watched, exampleObjects(name)));
  expect(render.problems).toStrictEqual([]);
  return textsOf(render);
};

describe('the examples', () => {
  test.each(exampleNames())('%s gives the maps, lists and backends on disk', async (name) => {
    const files = await rendered(name);
    const shown = Object.keys(files)
      .filter((path) => /\.(?:map|crt-list)$/.test(path))
      .sort()
      .map((path) => `==> ${path} <==\n${files[path] ?? ''}\n`);
    const [, backends = ''] = (files['haproxy.cfg'] ?? '').split(/^defaults haptic-route\n/m);
    const routes = backends.slice(backends.indexOf('\n\n') + 2);
    expectGolden(`${name}.txt`, `${shown.join('')}==> haproxy.cfg, backends <==\n${routes}`);
  });

  test('quickstart gives the configuration on disk', async () => {
    const files = await rendered('quickstart');
    expectGolden('quickstart.cfg', files['haproxy.cfg'] ?? '');
  });
});
