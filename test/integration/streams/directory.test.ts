import {
  appendFileSync,
  closeSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import {
  firstOf,
  pause,
  SERVICES,
  serviceYaml as service,
  until,
  WatchedDirectory,
} from '../../support/manifest-directory.ts';
import { watched } from '../../support/watched.ts';

const INGRESSES = watched('ingresses', { apiVersions: ['networking.k8s.io/v1'] });
const ingress = (name: string, apiVersion = 'networking.k8s.io/v1') =>
  `apiVersion: ${apiVersion}\nkind: Ingress\nmetadata: {name: ${name}}\n`;

let open: WatchedDirectory[] = [];
const watch = async (...args: ConstructorParameters<typeof WatchedDirectory>) => {
  const directory = new WatchedDirectory(...args);
  open.push(directory);
  await directory.synced();
  return directory;
};

afterEach(() => {
  for (const directory of open) directory.close();
  open = [];
});

describe('directorySource', () => {
  it('starts with everything as one replacement, sorted, of all files and folders', async () => {
    const directory = await watch({
      'b.yaml': `${service('z')}---\n${service('a')}`,
      'deep/er/c.yml': service('m'),
      'd.json': JSON.stringify({
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'j' },
        spec: { ports: [{ port: 1 }] },
      }),
      '.hidden.yaml': service('hidden'),
      '.git/e.yaml': service('hidden'),
      'notes.txt': service('hidden'),
    });
    expect(directory.events).toHaveLength(1);
    expect(directory.events[0]).toMatchObject({
      type: 'Replaced',
      objects: ['a', 'j', 'm', 'z'].map((name) => ({ metadata: { name, namespace: 'default' } })),
    });
    await until(() => directory.problems !== undefined);
    expect(directory.problems).toStrictEqual([]);
  });

  it('starts with an empty replacement for a kind that has no objects', async () => {
    const directory = await watch({ 'a.yaml': service('a') });
    const event = await firstOf(directory.source.watch(INGRESSES));
    expect(event).toStrictEqual({ type: 'Replaced', objects: [] });
  });

  it.each(['write', 'exchange', 'recreate'] as const)(
    'tells an edit as a single change, whichever way it is saved: %s',
    async (save) => {
      const directory = await watch({ 'a.yaml': `${service('a')}---\n${service('b')}` });
      for (const port of [81, 82, 83]) {
        directory[save]('a.yaml', `${service('a', port)}---\n${service('b')}`);
        await until(() => directory.names === `a:${port} b:80`);
      }
      await pause(120);
      expect(directory.changes).toBe('+a:81 +a:82 +a:83');
    },
  );

  it('shows an edit within 50 ms', async () => {
    const directory = await watch({ 'a.yaml': service('a') });
    const times: number[] = [];
    for (let port = 1; port <= 15; port += 1) {
      const begin = performance.now();
      directory.exchange('a.yaml', service('a', port));
      await until(() => directory.names === `a:${port}`);
      times.push(performance.now() - begin);
    }
    // The median: a busy machine may be late once.
    expect(times.sort((left, right) => left - right)[7]).toBeLessThan(50);
  });

  it('tells objects that come and go, with and without their file', async () => {
    const directory = await watch({ 'a.yaml': service('a') });
    directory.write('b.yaml', service('b'));
    await until(() => directory.names === 'a:80 b:80');
    appendFileSync(directory.file('a.yaml'), `---\n${service('c')}`);
    await until(() => directory.names === 'a:80 b:80 c:80');
    directory.write('a.yaml', service('a'));
    await until(() => directory.names === 'a:80 b:80');
    unlinkSync(directory.file('b.yaml'));
    await until(() => directory.names === 'a:80');
    directory.write('a.yaml', '# nothing any more\n');
    await until(() => directory.names === '');
    expect(directory.changes).toBe('+b:80 +c:80 -default/c -default/b -default/a');
  });

  it('sees nothing in a file that is renamed or touched', async () => {
    const directory = await watch({ 'a.yaml': service('a') });
    renameSync(directory.file('a.yaml'), directory.file('z.yaml'));
    await pause(100);
    directory.write('z.yaml', `# another comment\n${service('a')}`);
    await pause(100);
    expect(directory.changes).toBe('');
    expect(directory.problems).toStrictEqual([]);
    directory.write('z.yaml', service('a', 81));
    await until(() => directory.names === 'a:81');
  });

  it('follows folders that come, move and go', async () => {
    const directory = await watch();
    mkdirSync(directory.file('one'));
    await pause(20);
    directory.write('one/two/a.yaml', service('a'));
    await until(() => directory.names === 'a:80');
    renameSync(directory.file('one'), directory.file('new'));
    await pause(100);
    directory.write('new/two/a.yaml', service('a', 81));
    await until(() => directory.names === 'a:81');
    expect(directory.changes).toBe('+a:80 +a:81');
    rmSync(directory.file('new'), { recursive: true });
    await until(() => directory.names === '');
  });

  it('keeps the last good content of a broken file, and tells the place', async () => {
    const directory = await watch({ 'a.yaml': service('a'), 'b.yaml': service('b') });
    directory.write('a.yaml', `${service('a', 81)}---\n${service('c')}kind: [\n`);
    await until(() => directory.reasons === 'InvalidYAML');
    expect(directory.problems).toMatchObject([
      { severity: 'error', place: { source: 'a.yaml', line: 16 } },
    ]);
    expect(directory.names).toBe('a:80 b:80');
    directory.write('a.yaml', `${service('a', 82)}---\n${service('c')}`);
    await until(() => directory.names === 'a:82 b:80 c:80' && directory.reasons === '');
  });

  it('reads all others when one file is broken from the start', async () => {
    const directory = await watch({ 'a.yaml': 'a: [\n', 'b.yaml': service('b') });
    await until(() => directory.reasons === 'InvalidYAML');
    expect(directory.names).toBe('b:80');
  });

  it('does not believe a file that is being written', async () => {
    const text = [1, 2, 3].map((port) => service(`s${port}`, port)).join('---\n');
    // Longer than a busy machine may pause between two writes.
    const timings = { settleMs: 400, brokenMs: 400 };
    const directory = await watch({ 'a.yaml': text }, { timings });
    const edited = text.replace('port: 3', 'port: 4');
    const file = openSync(directory.file('a.yaml'), 'w');
    for (let at = 0; at < edited.length; at += 40) {
      writeSync(file, edited.slice(at, at + 40));
      await pause(5);
    }
    closeSync(file);
    await until(() => directory.names === 's1:1 s2:2 s3:4');
    expect(directory.changes).toBe('+s3:4');
    expect(directory.problems).toStrictEqual([]);
  });

  it('keeps everything while the directory is gone, and takes it up again', async () => {
    const timings = { absentPollMs: 50, returnMs: 300 };
    const directory = await watch({ 'a.yaml': service('a'), 'b.yaml': service('b') }, { timings });
    rmSync(directory.path, { recursive: true });
    await until(() => directory.reasons === 'DirectoryNotFound');
    await pause(100);
    expect(directory.changes).toBe('');
    directory.write('a.yaml', service('a', 81));
    await until(() => directory.names === 'a:81 b:80');
    await until(() => directory.names === 'a:81' && directory.reasons === '');
    directory.write('a.yaml', service('a', 82));
    await until(() => directory.names === 'a:82');
  });

  it('notices that the directory was exchanged for another one', async () => {
    const directory = await watch({ 'a.yaml': service('a') });
    const other = new WatchedDirectory({ 'a.yaml': service('a', 81) });
    open.push(other);
    renameSync(directory.path, `${directory.path}-old`);
    renameSync(other.path, directory.path);
    await until(() => directory.names === 'a:81');
    directory.write('a.yaml', service('a', 82));
    await until(() => directory.names === 'a:82');
    rmSync(`${directory.path}-old`, { recursive: true });
  });

  it('waits for a directory that does not exist yet', async () => {
    const directory = new WatchedDirectory({}, { timings: { absentPollMs: 50 } });
    open.push(directory);
    rmSync(directory.path, { recursive: true });
    await until(() => directory.reasons === 'DirectoryNotFound' || directory.events.length > 0);
    directory.write('a.yaml', service('a'));
    await until(() => directory.names === 'a:80');
  });

  it('follows the symbolic links of a mounted ConfigMap', async () => {
    const directory = await watch({
      '..one/a.yaml': service('a'),
      '..two/a.yaml': service('a', 81),
    });
    symlinkSync('..one', directory.file('..data'));
    symlinkSync('..data/a.yaml', directory.file('a.yaml'));
    await until(() => directory.names === 'a:80');
    symlinkSync('..two', directory.file('..new'));
    renameSync(directory.file('..new'), directory.file('..data'));
    await until(() => directory.names === 'a:81');
  });

  it('finds by looking what the file system does not tell', async () => {
    const elsewhere = new WatchedDirectory({ 'a.yaml': service('a') });
    open.push(elsewhere);
    const directory = await watch({}, { timings: { pollMs: 40 } });
    symlinkSync(elsewhere.file('a.yaml'), directory.file('a.yaml'));
    await until(() => directory.names === 'a:80');
    elsewhere.write('a.yaml', service('a', 81));
    await until(() => directory.names === 'a:81');
  });

  it('ends at the newest content of many files under many quick saves', async () => {
    const names = Array.from({ length: 40 }, (_, at) => `s${at}`);
    const directory = await watch();
    const saves = ['write', 'exchange', 'recreate'] as const;
    for (let port = 1; port <= 12; port += 1) {
      for (const [at, name] of names.entries()) {
        const save = port === 1 ? 'write' : (saves[(at + port) % 3] ?? 'write');
        directory[save](`${name}.yaml`, service(name, port));
      }
      if (port % 3 === 0) await pause(port);
    }
    const expected = names
      .map((name) => `${name}:12`)
      .sort()
      .join(' ');
    await until(() => directory.names === expected);
    await pause(150);
    expect(directory.names).toBe(expected);
    expect(directory.changes).not.toContain('-');
  });

  it('lets the first of two files win, in whatever order they are written', async () => {
    const directory = await watch({ 'm.yaml': service('a', 1) });
    directory.write('z.yaml', service('a', 2));
    await until(() => directory.reasons === 'DuplicateObject');
    expect(directory.problems).toMatchObject([
      {
        severity: 'warning',
        object: { kind: 'Service', name: 'a' },
        place: { source: 'z.yaml', line: 1 },
      },
    ]);
    expect(directory.changes).toBe('');
    directory.write('b.yaml', service('a', 3));
    await until(() => directory.names === 'a:3');
    unlinkSync(directory.file('b.yaml'));
    unlinkSync(directory.file('m.yaml'));
    await until(() => directory.names === 'a:2' && directory.reasons === '');
    expect(directory.changes).not.toContain('-');
  });

  it('warns of kinds that nobody watches, once they are known', async () => {
    const directory = await watch({
      'a.yaml': `${ingress('a')}---\n${ingress('b')}---\n${ingress('old', 'extensions/v1beta1')}---\n${service('s')}`,
      'c.yaml':
        'apiVersion: haproxy-haptic.org/v1alpha1\nkind: HAProxyTemplateConfig\nmetadata: {name: c}\n',
    });
    await until(() => directory.problems?.length === 2);
    expect(directory.problems?.map(({ message }) => message)).toStrictEqual(
      [
        'One object of kind Ingress (extensions/v1beta1) ignored: the configuration does not watch this kind.',
        '2 objects of kind Ingress (networking.k8s.io/v1) ignored: the configuration does not watch this kind.',
      ].sort((left, right) => (left.startsWith('2') ? -1 : right.startsWith('2') ? 1 : 0)),
    );
    const ingresses = directory.source.watch(INGRESSES).subscribe();
    await until(() => directory.problems?.length === 1);
    expect(directory.problems?.[0]?.nextStep).toContain('networking.k8s.io/v1');
    ingresses.unsubscribe();
    await until(() => directory.problems?.length === 2);
  });

  it('tells which of several configurations is in use', async () => {
    const config = (name: string) =>
      `apiVersion: haproxy-haptic.org/v1alpha1\nkind: HAProxyTemplateConfig\nmetadata: {name: ${name}}\n`;
    const directory = await watch({ 'a.yaml': `${config('two')}---\n${config('one')}` });
    await until(() => directory.reasons === 'SurplusConfig');
    expect(directory.problems?.[0]?.message).toContain('default/two is ignored');
    directory.write('a.yaml', config('two'));
    await until(() => directory.reasons === '');
  });

  it('reports a symbolic link that leads in a circle', async () => {
    const directory = await watch({ 'a.yaml': service('a') });
    symlinkSync('b.yaml', directory.file('b.yaml'));
    await until(() => directory.reasons === 'FileUnreadable');
    symlinkSync('.', directory.file('loop'));
    await pause(50);
    expect(directory.names).toBe('a:80');
  });

  it('shares one reader among all watches, and starts anew after the last', async () => {
    const directory = await watch({ 'a.yaml': service('a') });
    const later = await firstOf(directory.source.watch(SERVICES));
    expect(later).toMatchObject({ type: 'Replaced', objects: [{ metadata: { name: 'a' } }] });
    const { source } = directory;
    directory.write('a.yaml', service('a', 81));
    await until(() => directory.names === 'a:81');
    const again = await firstOf(source.watch(SERVICES));
    expect(again).toMatchObject({ objects: [{ spec: { ports: [{ port: 81 }] } }] });
  });

  it('reads a file of 10,000 documents again at the cost of the one that changed', async () => {
    const padding = `  note: "${'x'.repeat(1_000)}"\n`;
    const textOf = (port: number) =>
      Array.from(
        { length: 10_000 },
        (_, at) => service(`s${at}`, at === 7_000 ? port : 80) + padding,
      ).join('---\n');
    const directory = await watch({ 'big.yaml': textOf(1) });
    expect(directory.objects.size).toBe(10_000);
    const untouched = directory.objects.get('default/s1');
    directory.exchange('big.yaml', textOf(2));
    await until(() => directory.changes !== '');
    await pause(100);
    expect(directory.changes).toBe('+s7000:2');
    expect(directory.objects.get('default/s1')).toBe(untouched);
  });
});
