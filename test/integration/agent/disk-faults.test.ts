import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Operation } from '../../../src/protocol/protocol.ts';
import { haproxyVersions } from '../../support/haproxy.ts';
import { Bed, TOKEN, planIdOf, treeOf, type Apply, type Files } from './agent-bed.ts';

const [oldest] = haproxyVersions();
const LONG = process.env['HAPTIC_LONG'] === '1';
/** Of the calls of an apply, every so many is tried. */
const STRIDE = LONG ? 1 : 7;

describe('an agent whose disk fails', () => {
  let bed: Bed;
  const web = ['s1 127.0.0.1:9 weight 1'];
  const before = (): Files =>
    bed.files({ web, more: { 'general/gone': 'old', 'tls/site.pem': 'old' } });
  const after = (): Files =>
    bed.files({
      web,
      hosts: 'a.example api\n',
      more: { 'general/new/deep': 'new', 'tls/site.pem': 'new' },
    });
  const operations: readonly Operation[] = [
    { kind: 'map_set', map: 'maps/hosts.map', key: 'a.example', value: 'api' },
  ];
  const apply = (): Apply => ({ files: after(), mode: 'auto', reload: false, operations });

  beforeAll(async () => {
    bed = await Bed.start(oldest?.binary ?? '', { fault: undefined });
    await bed.apply({ files: before(), plan: 'before' });
  });

  afterAll(() => bed.stop());

  /** Known again, whatever was before. */
  const toBaseline = async (): Promise<void> => {
    await bed.fault({ do: 'nothing' });
    expect((await bed.apply({ files: before(), plan: 'before' })).outcome).toBe('reload');
    expect(bed.tree()).toEqual(treeOf(before()));
  };

  /** What the state says is on disk. */
  const expectTruth = async (): Promise<string> => {
    const { roles, files } = await bed.state(true);
    const trees = new Map([before(), after()].map((tree) => [planIdOf(tree), tree]));
    const names = new Map([before(), after()].map((tree, at) => [planIdOf(tree), at]));
    if (roles.applied === null) return 'unknown';
    if (files.some(({ digest }) => digest === '')) return 'drifted';
    expect(bed.tree()).toEqual(treeOf(trees.get(roles.applied) ?? {}));
    return names.get(roles.applied) === 0 ? 'before' : 'after';
  };

  test.each([
    ['is full', { code: 'ENOSPC', lasting: true }],
    ['becomes read-only', { code: 'EROFS', lasting: true }],
    ['fails once', { code: 'EIO', lasting: false }],
  ] as const)(
    'and %s, at any call of an apply, tells the truth and applies again afterwards',
    async (_, kind) => {
      await toBaseline();
      await bed.fault({ do: 'nothing' });
      expect((await bed.apply(apply())).outcome).toBe('runtime');
      await bed.state(true); // waits until everything is written down
      const count = bed.calls().length;
      expect(count).toBeGreaterThan(30);
      const seen = new Map<string, number>();
      for (let at = 1; at <= count; at += STRIDE) {
        await toBaseline();
        await bed.fault({ do: 'fail', at, ...kind });
        const outcome = await bed.apply(apply());
        const place = `call ${at} (${bed.calls()[at - 1]?.call ?? ''})`;
        if (outcome.outcome === 'rejected') {
          expect(['stage', 'write'], place).toContain(outcome.error?.stage);
          expect(outcome.error?.message, place).toContain(kind.code);
        }
        const found = await expectTruth().catch((error: unknown) => {
          throw new Error(`${place}: ${String(error)}`, { cause: error });
        });
        seen.set(found, (seen.get(found) ?? 0) + 1);
        await bed.fault({ do: 'nothing' });
        // Not remembered as bad, and nothing stands in the way.
        const again = await bed.apply({ ...apply(), mode: 'reload', reload: true });
        expect([place, again.outcome]).toEqual([place, 'reload']);
        expect(bed.tree()).toEqual(treeOf(after()));
      }
      expect(seen.get('before')).toBeGreaterThan(0);
    },
  );

  test('and lets no file be replaced takes back those it has replaced', async () => {
    await toBaseline();
    const inTheWay = join(bed.base, 'zz');
    mkdirSync(inTheWay);
    writeFileSync(join(inTheWay, 'foreign'), '');
    const files = { ...after(), zz: 'a file' };
    const outcome = await bed.apply({ ...apply(), files });
    expect(outcome).toMatchObject({ outcome: 'rejected', error: { stage: 'write' } });
    expect(outcome.error?.message).toContain('ENOTEMPTY');
    expect(outcome.roles).toMatchObject({ applied: planIdOf(before()), workerOperations: 1 });
    expect(bed.tree()).toEqual([...treeOf(before()), ...treeOf({ 'zz/foreign': '' })].sort());
    expect(existsSync(join(bed.base, 'general/new/deep'))).toBe(false);
    rmSync(inTheWay, { recursive: true });
    expect((await bed.apply({ ...apply(), files })).outcome).toBe('runtime');
  });

  test('and is slow is waited for, and answers everything else meanwhile', async () => {
    await toBaseline();
    await bed.fault({ do: 'wait', ms: 25 });
    let done = false;
    const slow = bed.apply(apply()).finally(() => (done = true));
    const second = bed.send({ ...apply(), expected: { applied: planIdOf(before()) } });
    const others = { headers: { authorization: `Bearer ${TOKEN}` } }; // on a connection of their own
    for (const path of ['/healthz', '/readyz', '/metrics', '/v1/state']) {
      expect((await fetch(`${bed.agent.url}${path}`, others)).status).toBe(200);
    }
    expect(done).toBe(false);
    expect((await slow).outcome).toBe('runtime');
    expect(await second).toMatchObject({ conflict: 'baseline_mismatch' });
    expect(bed.tree()).toEqual(treeOf(after()));
  });
});
