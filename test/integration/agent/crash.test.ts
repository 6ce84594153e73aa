import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Operation } from '../../../src/protocol/protocol.ts';
import { haproxyVersions } from '../../support/haproxy.ts';
import { Bed, planIdOf, type Files } from './agent-bed.ts';

/** How often it is killed, each time at another moment of an apply. */
const ROUNDS = process.env['HAPTIC_LONG'] === '1' ? 24 : 4;

describe.each(haproxyVersions())('an agent that is killed, on HAProxy $version', ({ binary }) => {
  let bed: Bed;

  beforeAll(async () => {
    bed = await Bed.start(binary);
  });

  afterAll(() => bed.stop());

  const filesOf = (round: number): Files => {
    const text = (index: number): string => `${round} ${index} ${'x'.repeat(20_000)}`;
    const general = Array.from({ length: 30 }, (_, index) => [`general/${index}`, text(index)]);
    return bed.files({
      web: [`s1 127.0.0.1:9 weight ${round + 1}`],
      more: Object.fromEntries(general) as Files,
    });
  };
  const weight = (round: number): Operation => ({
    kind: 'server_weight',
    backend: 'web',
    server: 's1',
    weight: round + 1,
  });
  const onDisk = (files: Files): boolean =>
    Object.entries(files).every(
      ([path, text]) => readFileSync(join(bed.base, path), 'utf8') === text,
    );

  const applyAndKill = async (round: {
    readonly round: number;
    readonly files: Files;
    readonly reload: boolean;
    readonly delayMs: number;
  }): Promise<void> => {
    const { files, reload } = round;
    const operations = reload ? [] : [weight(round.round)];
    const apply = bed
      .apply({ files, mode: 'auto', reload, operations, plan: reload ? 'a plan' : '' })
      .catch(() => undefined);
    await sleep(round.delayMs);
    await bed.agent.kill('SIGKILL');
    await apply;
    await bed.startAgent();
  };

  /** The worker holds what the agent says: the running plan and the operations since. */
  const checkWorker = async (running: Files | undefined, executed: number): Promise<void> => {
    const { operations } = await bed.plan();
    expect([0, executed]).toContain(operations.length);
    const last = operations.at(-1);
    const weighs = last !== undefined && 'weight' in last ? last.weight : weightIn(running);
    if (executed > 0 && last === undefined) return; // the agent does not claim to know
    expect(await bed.servers('web')).toEqual([`s1 127.0.0.1 9 ${weighs ?? ''} 0`]);
  };

  test('has afterwards the old tree, the new tree, or a baseline it calls unknown (P8)', async () => {
    const known = new Map<string, Files>();
    const remember = (round: number): Files => {
      const files = filesOf(round);
      known.set(planIdOf(files), files);
      return files;
    };
    await bed.apply({ files: remember(0), plan: '0' });
    const began = performance.now();
    await bed.apply({ files: remember(1), mode: 'auto', reload: false, operations: [weight(1)] });
    const spanMs = performance.now() - began;
    const seen = { old: 0, new: 0, unknown: 0 };
    for (let round = 2; round < ROUNDS + 2; round += 1) {
      const before = (await bed.state()).roles.applied;
      const files = remember(round);
      const reload = round % 3 === 0;
      const delayMs = ((round - 1.5) / ROUNDS) * spanMs * (reload ? 3 : 1);
      await applyAndKill({ round, files, reload, delayMs });
      const { applied, running, workerOperations } = (await bed.state(true)).roles;
      const isNew = applied === planIdOf(files);
      seen[applied === null ? 'unknown' : isNew ? 'new' : 'old'] += 1;
      if (applied !== null) {
        expect([before, planIdOf(files)]).toContain(applied);
        expect(onDisk(known.get(applied) ?? {})).toBe(true);
      }
      if (running !== null) await checkWorker(known.get(running), workerOperations);
      const outcome = await bed.apply({ files, plan: String(round) });
      expect(outcome.outcome).toBe('reload');
    }
    expect(seen.old + seen.new + seen.unknown).toBe(ROUNDS);
    expect(seen.old).toBeGreaterThan(0);
  });

  test('ends an apply in flight before it stops on SIGTERM', async () => {
    const files = filesOf(99);
    const apply = bed.apply({ files, mode: 'auto', reload: false, operations: [weight(99)] });
    await sleep(10);
    await bed.agent.kill('SIGTERM');
    expect(bed.agent.child.exitCode).toBe(0);
    const outcome = await apply.catch(() => undefined);
    await bed.startAgent();
    const { roles } = await bed.state(true);
    if (outcome === undefined) expect(roles.applied).not.toBe(planIdOf(files));
    else expect(roles).toMatchObject({ applied: planIdOf(files), workerOperations: 1 });
  });

  test('calls a tree that was changed meanwhile unknown', async () => {
    const files = filesOf(100);
    await bed.apply({ files });
    await bed.agent.kill('SIGKILL');
    writeFileSync(join(bed.base, 'general/3'), 'changed');
    await bed.startAgent();
    expect((await bed.state()).roles.applied).toBeNull();
    await bed.apply({ files });
    await bed.agent.kill('SIGKILL');
    writeFileSync(join(bed.base, '.haptic-agent.json'), '{"half');
    await bed.startAgent();
    expect((await bed.state()).roles).toMatchObject({
      applied: planIdOf(files),
      workerOperations: 0,
    });
    writeFileSync(join(bed.base, '.haptic/tree.json'), '');
    await bed.agent.kill('SIGKILL');
    await bed.startAgent();
    expect((await bed.state()).roles).toMatchObject({ applied: null, running: null });
    expect((await bed.apply({ files })).outcome).toBe('reload');
  });
});

const weightIn = (files: Files | undefined): number | undefined => {
  const text = files?.['haproxy.cfg']?.toString() ?? '';
  const weight = /weight (\d+)/.exec(text)?.[1];
  return weight === undefined ? undefined : Number(weight);
};
