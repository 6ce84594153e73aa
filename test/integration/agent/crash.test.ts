import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Operation } from '../../../src/protocol/protocol.ts';
import { haproxyVersions } from '../../support/haproxy.ts';
import { Bed, planIdOf, type Files } from './agent-bed.ts';

describe.each(haproxyVersions())('an agent that ends, on HAProxy $version', ({ binary }) => {
  let bed: Bed;

  beforeAll(async () => {
    bed = await Bed.start(binary);
    await bed.apply({ files: filesOf(0) });
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

  test('P8: calls a tree that was changed meanwhile unknown', async () => {
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
