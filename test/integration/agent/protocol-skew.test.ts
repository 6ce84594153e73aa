import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ApplyOutcome } from '../../../src/protocol/answers.ts';
import type { Operation } from '../../../src/protocol/protocol.ts';
import { haproxyVersions, waitFor } from '../../support/haproxy.ts';
import { Bed, TOKEN, planIdOf, sha256 } from './agent-bed.ts';

const RECORDED = ['1'.repeat(64), '2'.repeat(64)] as const;

describe.each(haproxyVersions())(
  'an agent and a controller of another version, on HAProxy $version',
  ({ binary }) => {
    let bed: Bed;

    beforeAll(async () => {
      bed = await Bed.start(binary);
    });

    afterAll(() => bed.stop());

    /** What the first controllers of protocol 1 sent, byte for byte. */
    const replay = async (name: string): Promise<ApplyOutcome> => {
      const response = await fetch(`${bed.agent.url}/v1/apply`, {
        method: 'POST',
        headers: { authorization: `Bearer ${TOKEN}` },
        body: readFileSync(new URL(`recorded/${name}.frame`, import.meta.url)),
      });
      const outcome = (await response.json()) as ApplyOutcome;
      expect([response.status, outcome]).toEqual([200, outcome]);
      return outcome;
    };

    test('a recorded manifest of an older controller still applies, operations and patches too', async () => {
      expect((await replay('protocol-1-reload')).outcome).toBe('reload');
      expect((await bed.servers('web')).sort()).toEqual([
        's1 127.0.0.1 9 1 0',
        's2 127.0.0.1 9 1 0',
      ]);
      const outcome = await replay('protocol-1-runtime');
      expect(outcome).toMatchObject({
        outcome: 'runtime',
        operationsRun: 9,
        roles: {
          applied: RECORDED[1],
          running: RECORDED[0],
          workerOperations: 9,
          lkg: RECORDED[0],
        },
      });
      await waitFor(async () => (await bed.state()).pendingDeletes === 0);
      expect((await bed.servers('web')).sort()).toEqual([
        's1 127.0.0.1 9 5 0',
        's3 127.0.0.1 10 3 0',
      ]);
      expect(await bed.hosts()).toEqual(['a.example none', 'd.example web']);
      const { files } = await bed.state(true);
      const text = readFileSync(`${bed.base}/haproxy.cfg`, 'utf8');
      expect(text).toContain('server s3 127.0.0.1:10 weight 3');
      expect(files.find(({ path }) => path === 'haproxy.cfg')?.digest).toBe(sha256(text));
    });

    test('an operation of a newer controller ends in a reload, a further member of its manifest in nothing', async () => {
      const files = bed.files({ web: ['s1 127.0.0.1:9'] });
      await bed.apply({ files, epoch: 5 });
      const newer = { of_the_future: { deep: [1] } } as object;
      const auto = { files, epoch: 5, mode: 'auto', reload: false, ...newer } as const;
      expect((await bed.apply(auto)).outcome).toBe('noop');
      const unknown = { kind: 'quic_retune', backend: 'web', much: 1 } as unknown as Operation;
      const { workerPid } = (await bed.state()).haproxy;
      const weight: Operation = { kind: 'server_weight', backend: 'web', server: 's1', weight: 9 };
      const outcome = await bed.apply({ ...auto, operations: [weight, unknown] });
      expect(outcome).toMatchObject({ outcome: 'reload', operationsRun: 0 });
      expect(outcome.failedOperations).toMatchObject([
        { kind: 'quic_retune', ok: false, message: 'unknown operation' },
      ]);
      const { haproxy, roles } = await bed.state();
      expect(haproxy.workerPid).not.toBe(workerPid);
      expect(roles).toMatchObject({ running: planIdOf(files), workerOperations: 0 });
      const answer = await bed.state();
      expect(answer.protocol).toBe(1);
      expect(new Set(answer.operationKinds).size).toBe(answer.operationKinds.length);
    });

    test('a manifest of another protocol is refused in words, and nothing changes', async () => {
      const { applied } = (await bed.state()).roles;
      const other = { protocol: 2 } as object;
      const refused = bed.apply({ files: bed.files(), epoch: 5, ...other });
      await expect(refused).rejects.toThrow('this agent speaks protocol 1 only');
      expect((await bed.state()).roles.applied).toBe(applied);
    });
  },
);
