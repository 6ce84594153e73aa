import { describe, expect, test } from 'vitest';
import type { ChangeSet } from '../../../src/plan/change-set.ts';
import { diff } from '../../../src/plan/diff.ts';
import { runtimeState } from '../../../src/plan/runtime-state.ts';
import type { CrtListEntry, Operation } from '../../../src/protocol/protocol.ts';
import { planOf, sha256, type World, type WorldFile } from '../../support/plan-world.ts';
import { capabilitiesOn } from '../../support/tls-plans.ts';

const LIST = 'certs/https.crt-list';
const line = (name: string, ...filters: string[]): CrtListEntry => ({
  ...{ certificate: `certs/${name}.pem`, options: [], filters },
});
const FIRST = line('default');
const cert = (name: string, change: Partial<WorldFile> = {}): WorldFile => ({
  ...{ path: `certs/${name}.pem`, text: name, kind: 'cert', reloadOnChange: true },
  ...change,
});
/** Lines of the list, with the certificates that they name. */
const world = (lines: readonly CrtListEntry[], files?: readonly WorldFile[]): World => ({
  ...{ core: ['frontend entry'], profiles: {}, backends: [], maps: [] },
  files:
    files ??
    [...new Set(lines.map(({ certificate }) => certificate))].map((path) =>
      cert('x', { path, text: path }),
    ),
  lists: [{ path: LIST, lines }],
});
const change = (before: World, after: World): ChangeSet => {
  const plan = planOf(before);
  const baseline = { applied: plan, running: plan, worker: runtimeState(plan) };
  return diff({ ...baseline, workerOperations: 0 }, planOf(after), capabilitiesOn('3.0.11'));
};
const word = (operation: Operation): string => {
  if ('file' in operation) return `${operation.kind} ${operation.file}`;
  if (!('list' in operation)) return operation.kind;
  const { certificate, filters } = operation.entry;
  return `${operation.kind} ${[certificate, ...filters].join(' ')}`;
};
const words = ({ operations }: ChangeSet): readonly string[] => operations.map(word);
const reasons = (set: ChangeSet): readonly string[] =>
  set.reasons.map(({ cause, message }) => `${cause}: ${message}`);

describe('a certificate list', () => {
  test('P5: gets a certificate before the line that names it', () => {
    expect(words(change(world([FIRST]), world([FIRST, line('a', 'a.example')])))).toEqual([
      'cert_add certs/a.pem',
      'crtlist_add certs/a.pem a.example',
    ]);
  });

  test('P5: loses a line before the certificate that it named', () => {
    expect(words(change(world([FIRST, line('a', 'a.example')]), world([FIRST])))).toEqual([
      'crtlist_delete certs/a.pem a.example',
      'cert_remove certs/a.pem',
    ]);
  });

  test('P5: names its new line before the old one goes, so a name always has a certificate', () => {
    const before = world([FIRST, line('a', 'a.example')]);
    expect(words(change(before, world([FIRST, line('a', 'a.example', 'b.example')])))).toEqual([
      'crtlist_add certs/a.pem a.example b.example',
      'crtlist_delete certs/a.pem a.example',
    ]);
  });

  test('keeps a certificate whose file stays', () => {
    const files = [cert('default'), cert('a')];
    const before = world([FIRST, line('a', 'a.example')], files);
    expect(words(change(before, world([FIRST], files)))).toEqual([
      'crtlist_delete certs/a.pem a.example',
    ]);
  });

  test.each<readonly [string, readonly CrtListEntry[], readonly CrtListEntry[]]>([
    ['its first line', [FIRST], [line('other')]],
    ['names no server', [FIRST], [FIRST, line('a')]],
    ['names no server', [FIRST, line('a')], [FIRST]],
    ['excludes a.example', [FIRST], [FIRST, line('a', '*.example', '!a.example')]],
    ['two lines', [FIRST], [FIRST, line('a', 'a.example'), line('b', 'A.EXAMPLE')]],
    ['two lines', [FIRST, line('a', 'x'), line('a', 'x')], [FIRST, line('a', 'x')]],
  ])('needs a reload where order matters: %s', (message, before, after) => {
    const set = change(world(before), world(after));
    expect(reasons(set).join()).toMatch(
      new RegExp(`crt-list-order: certificate list .*${message}`),
    );
    expect(set.inPlaceOperations.filter((one) => 'list' in one)).toEqual([]);
  });

  test.each([
    ['new', { lists: [] }, {}],
    ['removed', {}, { lists: [] }],
  ])('needs a reload when it is %s', (what, before, after) => {
    const some = world([FIRST]);
    expect(reasons(change({ ...some, ...before }, { ...some, ...after }))).toEqual([
      `file-changed: certificate list ${LIST}: ${what}`,
    ]);
  });

  test('keeps every line until a reload that is needed for something else', () => {
    const after = { ...world([FIRST, line('b', 'b.example')]), core: ['frontend other'] };
    const set = change(world([FIRST, line('a', 'a.example')]), after);
    expect(set.inPlaceOperations.map(word)).toEqual([
      'cert_add certs/b.pem',
      'crtlist_add certs/b.pem b.example',
    ]);
  });
});

describe('a TLS file', () => {
  test('is sent for the first server of a backend that names it, and for no other', () => {
    const authority: WorldFile = cert('ca', { kind: 'ca', reloadOnChange: false });
    const shop = (...names: readonly string[]): World => ({
      ...world([FIRST], [cert('default'), authority]),
      backends: [
        {
          ...{ name: 'shop', profile: 'web', balance: 'roundrobin', dynamic: true, body: [] },
          comment: '',
          servers: names.map((name) => ({
            ...{ name, address: '10.0.0.1', port: 443, weight: 1, state: 'ready' },
            keywords: ['ssl', 'ca-file', authority.path],
          })),
        },
      ],
    });
    expect(words(change(shop(), shop('a')))).toEqual(['ca_add certs/ca.pem', 'server_add']);
    expect(words(change(shop('a'), shop('a', 'b')))).toEqual(['server_add']);
    expect(words(change(shop('a'), shop()))).toEqual(['server_remove']);
  });

  const only = (file: WorldFile): World => world([FIRST], [cert('default'), file]);

  test.each(['cert', 'ca', 'crl'] as const)('of kind %s gets another content', (kind) => {
    const set = change(only(cert('a', { kind })), only(cert('a', { kind, text: 'new' })));
    expect(set.operations).toEqual([
      { kind: `${kind}_set`, file: 'certs/a.pem', digest: sha256('new') },
    ]);
    expect([...set.changedFiles]).toEqual(['certs/a.pem']);
  });

  test.each([
    ['too many', { text: 'x'.repeat(12_000) }],
    ['path', { path: 'certs/a b.pem' }],
  ])('needs a reload when no command carries it: %s', (message, more) => {
    const [before, after] = [cert('a', more), cert('a', { ...more, text: 'y'.repeat(12_000) })];
    expect(reasons(change(only(before), only(after))).join()).toMatch(
      new RegExp(`unsupported-operation: .*${message}`),
    );
  });

  test('that nothing named and that comes or goes needs a reload, unless declared otherwise', () => {
    const none = world([FIRST], [cert('default')]);
    expect(reasons(change(none, only(cert('a'))))).toEqual(['file-changed: file certs/a.pem: new']);
    expect(reasons(change(only(cert('a')), none))).toEqual([
      'file-changed: file certs/a.pem: removed',
    ]);
    const quiet = only(cert('a', { reloadOnChange: false }));
    expect(change(none, quiet)).toMatchObject({ verdict: 'files' });
    expect(change(quiet, none)).toMatchObject({ verdict: 'files' });
  });

  test('flows while a reload is needed for something else', () => {
    const after = { ...only(cert('a', { text: 'new' })), core: ['frontend other'] };
    const set = change(only(cert('a')), after);
    expect(set.verdict).toBe('reload');
    expect(set.inPlaceOperations.map(word)).toEqual(['cert_set certs/a.pem']);
  });
});
