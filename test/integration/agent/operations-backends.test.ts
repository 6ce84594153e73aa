/** Backends that come and go on a worker that is not started anew, from HAProxy 3.4 on. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ApplyOutcome } from '../../../src/protocol/answers.ts';
import type { Operation } from '../../../src/protocol/protocol.ts';
import { haproxyVersions, waitFor } from '../../support/haproxy.ts';
import { Bed, sha256, type Files } from './agent-bed.ts';

const EXTRA =
  'defaults profile\n  mode http\n  balance leastconn\n  timeout server 5s\n  timeout connect 1s';

const addBackend = (backend: string): Operation => ({
  ...{ kind: 'backend_add', backend, profile: 'profile', mode: 'http', structure: sha256(backend) },
});
const addServer = (backend: string, port: number): Operation => ({
  ...{ kind: 'server_add', backend, server: 's1', address: '127.0.0.1', port },
  ...{ weight: 1, state: 'ready', keywords: [] },
});
const publish = (backend: string): Operation => ({ kind: 'backend_publish', backend });
const route = (key: string, value: string): Operation => ({
  ...{ kind: 'map_add', map: 'maps/hosts.map', key, value },
});
const gone = (backend: string): readonly Operation[] => [
  { kind: 'backend_unpublish', backend },
  { kind: 'server_remove', backend, server: 's1' },
  { kind: 'backend_remove', backend },
];

describe.each(haproxyVersions())(
  'backend operations on HAProxy $version',
  ({ binary, version }) => {
    let bed: Bed;
    let files: Files;
    let pid: number;

    beforeAll(async () => {
      bed = await Bed.start(binary);
      files = bed.files({ extra: EXTRA });
      await bed.apply({ files });
      pid = (await bed.state()).haproxy.workerPid;
    });
    afterAll(() => bed.stop());

    const run = (operations: readonly Operation[]): Promise<ApplyOutcome> =>
      bed.apply({ files, mode: 'auto', reload: false, send: [], operations });
    const runs = async (operations: readonly Operation[]): Promise<void> => {
      expect(await run(operations)).toMatchObject({
        ...{ outcome: 'runtime', failedOperations: [], operationsRun: operations.length },
      });
      expect((await bed.state()).haproxy.workerPid).toBe(pid);
    };
    const nothingWaits = (): Promise<boolean> =>
      waitFor(async () => (await bed.state()).pendingDeletes === 0, { what: 'the deletions' });

    if (version !== '3.4') {
      test('backend_add is refused by this version, and a reload brings what is on disk', async () => {
        const outcome = await run([addBackend('late')]);
        expect(outcome).toMatchObject({ outcome: 'reload', operationsRun: 0 });
        expect(outcome.failedOperations[0]?.message).toMatch(/Unknown command/);
      });
      return;
    }

    test('a backend comes, serves, goes and comes back', async () => {
      const app = await bed.backend('first');
      await runs([
        addBackend('late'),
        addServer('late', app.port),
        publish('late'),
        route('late.example', 'late'),
      ]);
      expect(await bed.request('late.example')).toBe('200 first');
      await runs([
        { kind: 'map_delete', map: 'maps/hosts.map', key: 'late.example' },
        ...gone('late'),
      ]);
      expect(await bed.request('late.example')).toBe('404');
      await nothingWaits();
      expect(await bed.runtime('show backend')).not.toContain('late');
      const again = await bed.backend('second');
      await runs([addBackend('late'), addServer('late', again.port), publish('late')]);
      await runs([route('late.example', 'late')]);
      expect(await bed.request('late.example')).toBe('200 second');
    });

    test('one that is removed ends the requests it has, and its namesake waits for that', async () => {
      const app = await bed.backend('slow');
      await runs([addBackend('busy'), addServer('busy', app.port), publish('busy')]);
      await runs([route('busy.example', 'busy')]);
      const answer = bed.request('busy.example', '/slow');
      await waitFor(
        async () => (await bed.runtime('show stat busy 4 -1')).includes('busy,s1,0,0,1'),
        {
          what: 'the request to arrive',
        },
      );
      await runs([
        { kind: 'map_delete', map: 'maps/hosts.map', key: 'busy.example' },
        ...gone('busy'),
      ]);
      expect((await bed.state()).pendingDeletes).toBe(2);
      app.release();
      expect(await answer).toBe('200 slow-done');
      await runs([addBackend('busy'), addServer('busy', app.port), publish('busy')]);
      await runs([route('busy.example', 'busy')]);
      expect(await bed.request('busy.example')).toBe('200 slow');
    });

    test('a backend that is not published takes nothing', async () => {
      const app = await bed.backend('hidden');
      await runs([
        addBackend('hidden'),
        addServer('hidden', app.port),
        route('h.example', 'hidden'),
      ]);
      expect(await bed.request('h.example')).not.toContain('200');
      await runs([publish('hidden')]);
      expect(await bed.request('h.example')).toBe('200 hidden');
    });

    test.each([
      ['a name that is taken', [addBackend('web')], /already used/],
      [
        'a profile that is not loaded',
        [{ ...addBackend('x'), profile: 'none' } as Operation],
        /find/,
      ],
      ['a backend that is not there', [publish('nowhere')], /./],
    ])('%s ends in a reload', async (_, operations, message) => {
      const outcome = await run(operations);
      expect(outcome.outcome).toBe('reload');
      expect(outcome.failedOperations[0]?.message).toMatch(message);
    });
  },
);
