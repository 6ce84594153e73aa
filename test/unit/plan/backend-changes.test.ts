import { describe, expect, test } from 'vitest';
import type { ChangeSet } from '../../../src/plan/change-set.ts';
import { diff } from '../../../src/plan/diff.ts';
import { runtimeState } from '../../../src/plan/runtime-state.ts';
import type { Server } from '../../../src/plan/plan.ts';
import { planOf, type World, type WorldBackend } from '../../support/plan-world.ts';
import { capabilitiesOn } from '../../support/tls-plans.ts';

const server: Server = {
  ...{ name: 'a', address: '10.0.0.1', port: 80, weight: 100, state: 'ready', keywords: [] },
};
const backend = (name: string, change: Partial<WorldBackend> = {}): WorldBackend => ({
  ...{ name, profile: 'web', balance: 'roundrobin', dynamic: true, body: [], comment: '' },
  servers: [server],
  ...change,
});
const world = (change: Partial<World> = {}): World => ({
  core: ['frontend entry'],
  profiles: { web: ['mode http', 'balance roundrobin'], bare: ['mode http'] },
  backends: [backend('shop')],
  maps: [{ path: 'maps/a.map', ordered: false, entries: [['shop.example', 'shop']] }],
  files: [],
  ...change,
});
const change = (before: World, after: World, haproxy = '3.4.7'): ChangeSet => {
  const plan = planOf(before);
  const baseline = { applied: plan, running: plan, worker: runtimeState(plan) };
  return diff({ ...baseline, workerOperations: 0 }, planOf(after), capabilitiesOn(haproxy));
};
const kinds = ({ operations }: ChangeSet): readonly string[] => operations.map(({ kind }) => kind);

const both = (added: WorldBackend): World =>
  world({
    backends: [backend('shop'), added],
    maps: [
      {
        ...{ path: 'maps/a.map', ordered: false },
        entries: [
          ['new.example', 'new'],
          ['shop.example', 'shop'],
        ],
      },
    ],
  });

describe('servers of a profile with a default-server line', () => {
  const inheriting = (servers: readonly Server[], backends: readonly WorldBackend[] = []): World =>
    world({
      profiles: { web: ['mode http', 'balance roundrobin', 'default-server maxconn 7'] },
      backends: [backend('shop', { servers }), ...backends],
    });
  const [one, two] = [server, { ...server, name: 'b' }];

  test.each([
    ['come', inheriting([one]), inheriting([one, two])],
    ['go', inheriting([one, two]), inheriting([one])],
    ['come with their backend', inheriting([one]), inheriting([one], [backend('new')])],
  ])('%s with a reload: at run time they would not inherit it (P2)', (_, before, after) => {
    const { verdict, reasons } = change(before, after);
    expect(verdict).toBe('reload');
    expect(reasons[0]?.message).toContain('default-server line of its profile web');
  });

  test('move and change their weight without one', () => {
    const moved = { ...one, address: '10.0.0.9', weight: 1 };
    expect(change(inheriting([one]), inheriting([moved])).verdict).toBe('runtime');
  });
});

describe('a backend that comes (P5)', () => {
  test('has its servers and is published before a map leads to it', () => {
    const set = change(world(), both(backend('new')));
    expect(kinds(set)).toEqual(['backend_add', 'server_add', 'backend_publish', 'map_add']);
    expect(set.operations[0]).toMatchObject({ backend: 'new', profile: 'web', mode: 'http' });
  });

  test.each<readonly [string, Partial<WorldBackend>]>([
    ['lines of its own', { body: ['option httpclose'] }],
    ['not dynamic|declared so', { dynamic: false }],
    ['another mode, balance or hash-type', { balance: 'leastconn' }],
    ['another mode, balance or hash-type', { profile: 'bare' }],
    ['profile none is not loaded', { profile: 'none' }],
    ['cannot be sent', { name: 'new shop' }],
    ['IP literal', { servers: [{ ...server, address: 'pod.example' }] }],
    ['takes no servers', { balance: 'static-rr', profile: 'static' }],
  ])('needs a reload on 3.4, since: %s', (message, more) => {
    const profiles = { ...world().profiles, static: ['mode http', 'balance static-rr'] };
    const set = change(world({ profiles }), { ...both(backend('new', more)), profiles });
    expect(set.verdict).toBe('reload');
    expect(set.reasons.map((reason) => reason.message).join()).toMatch(new RegExp(message));
    expect(set.inPlaceOperations).toEqual([]);
  });

  test('needs a reload while its profile changes', () => {
    const profiles = { ...world().profiles, web: ['mode http', 'balance roundrobin', 'retries 2'] };
    const set = change(world(), { ...both(backend('new')), profiles });
    expect(set.reasons.map(({ cause }) => cause)).toEqual([
      ...['core-changed', 'profile-changed', 'backend-added'],
    ]);
  });

  test.each(['3.0.11', '3.2.26', '', 'unknown'])('needs a reload on HAProxy "%s"', (haproxy) => {
    const set = change(world(), both(backend('new')), haproxy);
    expect(set.reasons.map(({ cause }) => cause)).toEqual(['backend-added']);
  });
});

describe('a backend that goes (P5)', () => {
  test('loses its routes, then its publication, then its servers', () => {
    const set = change(both(backend('new')), world());
    expect(kinds(set)).toEqual([
      ...['map_delete', 'backend_unpublish', 'server_remove', 'backend_remove'],
    ]);
  });

  test.each<readonly [string, Partial<WorldBackend>, string]>([
    ['it has lines of its own', { body: ['option httpclose'] }, '3.4.7'],
    ['it is not dynamic', { dynamic: false }, '3.4.7'],
    ['HAProxy is older', {}, '3.2.26'],
  ])('needs a reload when %s, and its routes go ahead', (_, more, haproxy) => {
    const set = change(both(backend('new', more)), world(), haproxy);
    expect(set.reasons.map(({ cause }) => cause)).toEqual(['backend-removed']);
    expect(set.inPlaceOperations.map(({ kind }) => kind)).toEqual(['map_delete']);
  });

  test('stays as it is while maps wait for a reload', () => {
    const set = change(both(backend('new')), { ...world(), core: ['frontend other'] });
    expect(set.inPlaceOperations).toEqual([]);
  });
});

describe('the maxconn of a server (R22)', () => {
  const shop = (...keywords: string[]): World =>
    world({ backends: [backend('shop', { servers: [{ ...server, keywords }] })] });

  test('changes alone', () => {
    const set = change(shop('check', 'maxconn', '10'), shop('check', 'maxconn', '20'));
    expect(set.operations).toEqual([
      { kind: 'server_maxconn', backend: 'shop', server: 'a', maxconn: 20 },
    ]);
  });

  test.each([
    [['maxconn', '10'], []],
    [[], ['maxconn', '10']],
    [
      ['maxconn', '10'],
      ['maxconn', '0'],
    ],
    [
      ['maxconn', '10'],
      ['maxconn', 'many'],
    ],
    [
      ['maxconn', '10'],
      ['check', 'maxconn', '10'],
    ],
    [
      ['maxconn', '10', 'check'],
      ['maxconn', '20', 'backup'],
    ],
  ])('needs a reload from %j to %j', (before, after) => {
    const set = change(shop(...before), shop(...after));
    expect(set.reasons.map(({ cause }) => cause)).toEqual(['server-keywords']);
  });
});
