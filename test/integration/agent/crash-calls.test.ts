import { existsSync, readdirSync } from 'node:fs';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ApplyOutcome } from '../../../src/protocol/answers.ts';
import type { Operation } from '../../../src/protocol/protocol.ts';
import { haproxyVersions } from '../../support/haproxy.ts';
import { Bed, planIdOf, treeOf, type Apply, type Files } from './agent-bed.ts';
import type { Fault } from './disk-faults.ts';

const LONG = process.env['HAPTIC_LONG'] === '1';
/** Milliseconds for one test; about half a second a moment on a quiet machine, twice that in a recovery. */
const TIMEOUT = LONG ? 1_800_000 : 120_000;

type Moment = Extract<Fault, { do: 'kill' }>;

/** So many of the moments, evenly, each version other ones; in the long mode all of them. */
const sampled = (moments: readonly Moment[], most: number, version: number): readonly Moment[] => {
  if (LONG) return moments;
  const step = moments.length / most;
  return Array.from({ length: most }, (_, at) =>
    moments.at(Math.floor((at + (version + 1) / 4) * step)),
  ).filter((moment) => moment !== undefined);
};

describe.each(haproxyVersions().map((tested, index) => ({ ...tested, index })))(
  'an agent that is killed at a file-system call of an apply, on HAProxy $version (P8)',
  ({ binary, index }) => {
    let bed: Bed;
    const large = (mark: string): string => mark.repeat(90_000); // operations do not wait for it
    const before = (): Files =>
      bed.files({
        web: ['s1 127.0.0.1:9 weight 1'],
        more: { 'general/gone': 'old', 'general/large': large('a'), 'tls/site.pem': 'old' },
      });
    const after = (extra = ''): Files =>
      bed.files({
        web: ['s1 127.0.0.1:9 weight 7'],
        hosts: 'a.example api\n',
        extra,
        more: { 'general/large': large('b'), 'general/new/deep': 'new', 'tls/site.pem': 'new' },
      });
    const operations: readonly Operation[] = [
      { kind: 'server_weight', backend: 'web', server: 's1', weight: 7 },
      { kind: 'map_set', map: 'maps/hosts.map', key: 'a.example', value: 'api' },
    ];
    const applies: Readonly<Record<'operations' | 'a reload', () => Apply>> = {
      operations: () => ({
        files: after(),
        mode: 'auto',
        reload: false,
        operations,
        plan: 'after',
      }),
      'a reload': () => ({
        files: after('backend second\n  server s2 127.0.0.1:9'),
        mode: 'auto',
        reload: true,
        inPlaceOperations: operations.slice(0, 1),
        plan: 'second',
      }),
    };

    beforeAll(async () => {
      bed = await Bed.start(binary, { fault: undefined });
    });

    afterAll(() => bed.stop());

    const restart = async (fault?: Fault): Promise<void> => {
      await bed.agent.kill('SIGKILL');
      await bed.startAgent({ fault });
    };

    const applyFrom = async (apply: Apply, fault: Fault): Promise<ApplyOutcome | undefined> => {
      const { outcome } = await bed.apply({ files: before(), plan: 'before' });
      expect(outcome).toBe('reload');
      await bed.fault(fault);
      return bed.apply(apply).catch(() => undefined);
    };

    const moments = (): Moment[] =>
      bed.calls().flatMap(({ at }) => [
        { do: 'kill', at, side: 'before' },
        { do: 'kill', at, side: 'after' },
      ]);

    /** Every moment of an apply. */
    const momentsOf = async (apply: Apply): Promise<Moment[]> => {
      await restart();
      expect(await applyFrom(apply, { do: 'nothing' })).toBeDefined();
      await bed.state(true); // waits until everything is written down
      expect(bed.calls().length).toBeGreaterThan(30);
      return moments();
    };

    /** Kills at one moment of an apply; a moment that does not come this time is its end. */
    const applyAndDie = async (apply: Apply, moment: Moment): Promise<void> => {
      const exited = once(bed.agent.child, 'exit');
      await applyFrom(apply, moment);
      const ended = await Promise.race([exited, bed.state(true).catch(() => exited)]);
      if (!Array.isArray(ended)) await bed.agent.kill('SIGKILL');
    };

    /** What a role names is what the worker really holds. */
    const expectWorker = async (known: ReadonlyMap<string, Files>): Promise<void> => {
      const { running, workerOperations } = (await bed.state()).roles;
      if (running === null) return;
      const files = known.get(running) ?? {};
      const config = String(files['haproxy.cfg']);
      const second = await bed.servers('second');
      expect(second.length > 0).toBe(config.includes('second'));
      const stored = await bed.plan();
      if (stored.plan !== '') expect(stored.operations).toHaveLength(workerOperations);
      const [server] = await bed.servers('web');
      if (workerOperations > 0) {
        expect(server).toBe('s1 127.0.0.1 9 7 0');
        return;
      }
      expect(server).toBe(`s1 127.0.0.1 9 ${String(/weight (\d+)/.exec(config)?.[1])} 0`);
      expect(await bed.hosts()).toEqual([String(files['maps/hosts.map']).trim()]);
    };

    const expectTruth = async (apply: Apply): Promise<'old' | 'new' | 'unknown'> => {
      const known = new Map([before(), apply.files].map((files) => [planIdOf(files), files]));
      const { applied, lkg } = (await bed.state(true)).roles;
      if (applied !== null) expect(bed.tree()).toEqual(treeOf(known.get(applied) ?? {}));
      expect(existsSync(join(bed.base, '.haptic/journal.json'))).toBe(false);
      expect(readdirSync(join(bed.base, '.haptic/stage'))).toEqual([]);
      await expectWorker(known);
      if (lkg !== null) {
        await bed.apply({ files: {}, planId: lkg, mode: 'revert', reload: false });
        expect(bed.tree()).toEqual(treeOf(known.get(lkg) ?? {})); // it can go back where it says
      }
      if (applied === null) return 'unknown';
      return applied === planIdOf(apply.files) ? 'new' : 'old';
    };

    const naming = async <T>({ at, side }: Moment, check: () => Promise<T>): Promise<T> => {
      const call = bed.calls().at(-1)?.call ?? 'none';
      try {
        return await check();
      } catch (error: unknown) {
        throw new Error(`killed ${side} call ${at} (${call}): ${String(error)}`, { cause: error });
      }
    };

    test.each(['operations', 'a reload'] as const)(
      'by one with %s has the old tree, the new one, or a baseline it calls unknown',
      async (kind) => {
        const apply = applies[kind]();
        const all = await momentsOf(apply);
        const seen = { old: 0, new: 0, unknown: 0 };
        await restart();
        for (const moment of sampled(all, 6, index)) {
          await applyAndDie(apply, moment);
          await naming(moment, async () => {
            await bed.startAgent({ fault: undefined });
            seen[await expectTruth(apply)] += 1;
          });
        }
        expect(seen.old).toBeGreaterThan(0);
        expect(seen.new).toBeGreaterThan(0);
        expect(seen.unknown).toBe(0); // the way back or forth was always there
      },
      TIMEOUT,
    );

    test(
      'and again while it recovers has the old tree, or a baseline it calls unknown',
      async () => {
        const apply = applies.operations();
        await momentsOf(apply);
        const renames = bed.calls().filter(({ call }) => call === 'rename');
        const at = renames[Math.floor(renames.length / 2)]?.at ?? 1; // some files are new, others old
        await applyAndDie(apply, { do: 'kill', at, side: 'before' });
        await bed.startAgent({ fault: { do: 'nothing' } });
        const all = moments();
        expect(await expectTruth(apply)).toBe('old');
        for (const moment of sampled(all, 2, index)) {
          await restart();
          await applyAndDie(apply, { do: 'kill', at, side: 'before' });
          await expect(bed.startAgent({ fault: moment })).rejects.toThrow('the agent ended');
          await naming(moment, async () => {
            await bed.startAgent({ fault: undefined });
            expect(['old', 'unknown']).toContain(await expectTruth(apply));
          });
        }
      },
      TIMEOUT,
    );
  },
);
