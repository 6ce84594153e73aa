/** `haptic test` with the real HAProxy, and what it does about templates that do not end. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { haproxyVersions } from '../../support/haproxy.ts';
import { ingress, service } from '../../support/objects.ts';
import { haptic } from '../../support/terminal.ts';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const EXAMPLE = fileURLToPath(new URL('../../../examples/configuration-tests', import.meta.url));
const [{ binary: newest } = { binary: '' }] = haproxyVersions().slice(-1);

const LOOP =
  '{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% endfor %}{% endfor %}{% endfor %}';

/** What a snippet in `global` does, by the setting `mode`. */
const SNIPPET = [
  '{% macro down(n) %}{{ down(n + 1) }}{% endmacro %}',
  '{% switch extraContext.mode %}',
  '{% case "endless" %}',
  LOOP,
  '{% case "growing" %}',
  LOOP.replace('{% endfor %}', '{{ a }}{{ b }}{{ c }} {{ c }}{{ b }}{{ a }} {% endfor %}'),
  '{% case "recursing" %}',
  '{{ down(0) }}',
  '{% case "refused" %}',
  '    no-such-directive',
  '{% endswitch %}',
  '',
].join('\n');

const REFUSED_LINE = SNIPPET.split('\n').indexOf('    no-such-directive') + 1;

const SHARED = {
  fixtures: {
    services: [service('web')],
    ingresses: [ingress('web', { rules: [['web.example.com', '/', 'web:80']] })],
  },
};

const configuration = (tests: object, mode = 'plain', name = 'haptic'): object => ({
  apiVersion: 'haproxy-haptic.org/v1alpha1',
  kind: 'HAProxyTemplateConfig',
  metadata: { namespace: 'default', name },
  spec: {
    templatingSettings: { extraContext: { mode } },
    templateSnippets: { 'global-600-mode': { template: SNIPPET } },
    files: { 'note.json': { template: '{"a": {"b": [1, 2], "c": "x"}}' } },
    validationTests: tests,
  },
});

const directory = (...objects: readonly object[]): string => {
  const path = mkdtempSync(join(tmpdir(), 'ht-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  writeFileSync(join(path, 'all.yaml'), objects.map((one) => JSON.stringify(one)).join('\n---\n'));
  return path;
};

interface Told {
  readonly haproxy: string;
  readonly summary: Readonly<Record<string, number>>;
  readonly configurations: readonly {
    readonly name: string;
    readonly tests: readonly {
      readonly name: string;
      readonly outcome: string;
      readonly reasons: readonly Readonly<Record<string, unknown>>[];
    }[];
  }[];
  readonly problems: readonly { readonly reason: string; readonly message: string }[];
}

const told = async (path: string, ...flags: string[]): Promise<{ status: number } & Told> => {
  const { status, out, err } = await haptic([
    'test',
    path,
    ...['--haproxy', newest, '--output', 'json'],
    ...flags,
  ]);
  expect(err).toBe('');
  return { status, ...(JSON.parse(out) as Told) };
};

const outcomes = ({ configurations }: Told): Readonly<Record<string, string>> =>
  Object.fromEntries(
    configurations.flatMap(({ tests }) => tests.map(({ name, outcome }) => [name, outcome])),
  );

const HOSTS = 'map:hosts.map';
const NOTE = 'file:note.json';

/** Each assertion as one that holds and as one that does not. */
const ASSERTIONS: Readonly<Record<string, readonly [good: object, bad: object]>> = {
  contains: [
    { target: HOSTS, pattern: '^web\\.' },
    { target: HOSTS, pattern: '^shop\\.' },
  ],
  not_contains: [{ pattern: 'web\\.example' }, { pattern: 'bind ' }],
  equals: [
    { target: HOSTS, expected: 'web.example.com web.example.com\n' },
    { target: HOSTS, expected: 'web.example.com other' },
  ],
  match_count: [
    { pattern: '(?m)^global$', expected: 1 },
    { pattern: '(?m)^global$', expected: 2 },
  ],
  match_order: [
    { patterns: ['(?m)^global', '(?m)^frontend'] },
    { patterns: ['(?m)^frontend', '(?m)^global'] },
  ],
  jsonpath: [
    { target: NOTE, jsonpath: '{.a.b[1]}', expected: 2 },
    { target: NOTE, jsonpath: '{.a.b[1]}', expected: 3 },
  ],
};

describe.each(haproxyVersions())('haptic test on HAProxy $version', ({ binary, version }) => {
  it('passes and fails haproxy_valid as HAProxy does, with its words and the template line', async () => {
    const assertions = [{ type: 'haproxy_valid' }];
    const path = directory(
      configuration({
        _global: SHARED,
        accepted: { assertions },
        refused: { assertions, extraContext: { mode: 'refused' } },
      }),
    );
    const { status, out, err } = await haptic(['test', path, '--haproxy', binary]);
    expect({ status, err }).toStrictEqual({ status: 1, err: '' });
    expect(out).toMatch(/^HAProxyTemplateConfig default\/haptic\n {2}passed +accepted \(/);
    expect(out).toMatch(
      /^ {2}FAILED +refused \(.*\)\n {6}assertions\[0\] haproxy_valid: .*unknown keyword 'no-such-directive'/m,
    );
    expect(out).toContain(
      `        at HAProxyTemplateConfig default/haptic: templateSnippets.global-600-mode.template:${String(REFUSED_LINE)}\n`,
    );
    expect(out).toMatch(
      new RegExp(`^2 tests on HAProxy ${version}\\..*: 1 passed, 1 failed \\(.*\\)\n$`, 'm'),
    );
  });

  it('passes the example', async () => {
    const { status, out } = await haptic(['test', EXAMPLE, '--haproxy', binary]);
    expect(out).toMatch(/: 3 passed \(/);
    expect(status).toBe(0);
  });
});

describe('haptic test', () => {
  it('passes and fails every other assertion, and says what was expected and what was there', async () => {
    const tests = Object.entries(ASSERTIONS).flatMap(([type, [good, bad]]) => [
      [`good-${type}`, { assertions: [{ type, ...good }] }],
      [`bad-${type}`, { assertions: [{ type, ...bad }] }],
    ]);
    const { status, ...run } = await told(
      directory(
        configuration({
          _global: SHARED,
          'good-deterministic': { assertions: [{ type: 'deterministic' }] },
          'good-error': {
            extraContext: { mode: 'recursing' },
            assertions: [
              { type: 'contains', target: 'rendering_error', pattern: 'deeper than 100' },
            ],
          },
          ...(Object.fromEntries(tests) as Readonly<Record<string, unknown>>),
        }),
      ),
    );
    for (const [name, outcome] of Object.entries(outcomes(run))) {
      expect([name, outcome]).toStrictEqual([name, name.startsWith('good') ? 'passed' : 'failed']);
    }
    expect(run.summary).toMatchObject({ total: 14, passed: 8, failed: 6 });
    expect(status).toBe(1);
    const reasons = run.configurations[0]?.tests.flatMap((test) => test.reasons) ?? [];
    expect(reasons).toHaveLength(6);
    for (const reason of reasons) {
      expect(reason).toMatchObject({ reason: 'ValidationTestFailed' });
      expect(reason['expected']).toMatch(/\S/);
      expect(reason['found']).toMatch(/\S/);
    }
  });

  it('ends a test that does not end, one that takes all memory and one that recurses, and runs the others (G13)', async () => {
    const path = directory(
      configuration({
        _global: SHARED,
        ...{ 'a-good': {}, 'b-endless': { extraContext: { mode: 'endless' } }, 'c-good': {} },
        ...{ 'd-growing': { extraContext: { mode: 'growing' } }, 'e-good': {} },
        ...{ 'f-recursing': { extraContext: { mode: 'recursing' } }, 'g-good': {} },
      }),
    );
    const { status, ...run } = await told(path, '--timeout', '10', '--memory', '64');
    expect(outcomes(run)).toStrictEqual({
      ...{ 'a-good': 'passed', 'b-endless': 'failed', 'c-good': 'passed' },
      ...{ 'd-growing': 'failed', 'e-good': 'passed' },
      ...{ 'f-recursing': 'failed', 'g-good': 'passed' },
    });
    expect(status).toBe(1);
    const reasons = run.configurations[0]?.tests.flatMap((test) => test.reasons) ?? [];
    expect(reasons.map(({ reason, message }) => [reason, message])).toStrictEqual([
      ['ConfigTooSlow', 'Running the test "b-endless" took longer than 10 s and was ended.'],
      [
        'ConfigTooLarge',
        'Running the test "d-growing" needed more than 64 MiB of memory and was ended.',
      ],
      [
        'ValidationTestFailed',
        'Test "f-recursing": cannot be rendered: includes and macros nest deeper than 100 levels.',
      ],
    ]);
  });

  it('runs the tests of all configurations, and those of a filter alone', async () => {
    const path = directory(
      configuration({ one: {}, two: {} }),
      configuration({ one: {}, three: {} }, 'plain', 'other'),
      configuration({}, 'plain', 'silent'),
    );
    const all = await told(path);
    expect(all.status).toBe(0);
    expect(
      all.configurations.map(({ name, tests }) => [name, tests.map((test) => test.name)]),
    ).toStrictEqual([
      ['HAProxyTemplateConfig default/haptic', ['one', 'two']],
      ['HAProxyTemplateConfig default/other', ['one', 'three']],
    ]);
    expect(all.problems).toMatchObject([{ reason: 'NoTests', severity: 'warning' }]);
    const some = await told(path, '--filter', 't*');
    expect(outcomes(some)).toStrictEqual({ two: 'passed', three: 'passed' });
  });

  it('runs nothing and fails without a test, a configuration or a match', async () => {
    const reasonsOf = async (path: string, ...flags: string[]) => {
      const { status, problems, summary } = await told(path, ...flags);
      expect({ status, total: summary['total'] }).toStrictEqual({ status: 1, total: 0 });
      return problems.map(({ message }) => message).join(' ');
    };
    expect(await reasonsOf(directory(service('web')))).toBe(
      'The directory holds no HAProxyTemplateConfig.',
    );
    expect(await reasonsOf(directory(configuration({ _global: SHARED })))).toBe(
      'HAProxyTemplateConfig default/haptic has no test.',
    );
    expect(await reasonsOf(directory(configuration({ one: {} })), '--filter', 'eno')).toBe(
      'No test is called "eno"; there are one.',
    );
  });

  it('fails for a configuration that is refused or does not compile, and runs the tests of the others', async () => {
    const wrong = { ...configuration({ a: {} }, 'plain', 'wrong'), spec: { mapps: {} } };
    const broken = {
      ...configuration({}, 'plain', 'broken'),
      spec: {
        templateSnippets: { 'global-600-x': { template: '{{ nothing }}' } },
        validationTests: { a: {} },
      },
    };
    const { status, ...run } = await told(directory(wrong, broken, configuration({ b: {} })));
    expect(status).toBe(1);
    expect(outcomes(run)).toStrictEqual({ b: 'passed' });
    expect(run.problems.map(({ reason }) => reason)).toStrictEqual([
      'InvalidConfig',
      'TemplateError',
    ]);
  });

  it('needs HAProxy for what only HAProxy can say, and for nothing else', async () => {
    const tests = { judged: { assertions: [{ type: 'haproxy_valid' }] }, other: {} };
    const path = directory(configuration(tests));
    const without = await haptic(['test', path]);
    expect(without.status).toBe(2);
    expect(without.out).toMatch(/^ {2}NOT JUDGED {2}judged .*\n.*there is no haproxy on PATH/m);
    expect(without.out).toMatch(/^2 tests without HAProxy: 1 passed, 1 not judged/m);
    expect((await haptic(['test', path, '--filter', 'other'])).status).toBe(0);
    const named = await haptic(['test', path, '--haproxy', '/nowhere']);
    expect(named).toStrictEqual({
      status: 2,
      out: '',
      err: 'haptic test: cannot run /nowhere: no such file\n',
    });
  });

  it('tells files that cannot be read, and fails', async () => {
    const path = directory(configuration({ one: {} }));
    writeFileSync(join(path, 'broken.yaml'), 'a: [');
    const { status, out, err } = await haptic(['test', path, '--haproxy', newest]);
    expect(status).toBe(1);
    expect(err).toMatch(/^error: broken\.yaml:1:\d+: InvalidYAML: /);
    expect(out).toContain('1 test on HAProxy');
  });

  it('writes JUnit XML, also into a directory that is new', async () => {
    const path = directory(configuration({ good: {}, late: { minHAProxyVersion: 9.9 } }));
    const file = join(path, 'out', 'junit.xml');
    const { status } = await haptic(['test', path, '--haproxy', newest, '--junit', file]);
    expect(status).toBe(0);
    const xml = readFileSync(file, 'utf8');
    expect(xml).toMatch(
      /<testsuite name="HAProxyTemplateConfig default\/haptic" tests="2" failures="0" errors="0" skipped="1"/,
    );
    expect(xml).toMatch(
      /<testcase [^>]*name="late"[^>]*>\n<skipped message="It needs HAProxy 9\.9/,
    );
    const words = ['test', path, '--haproxy', newest, '--junit', '/proc/x/y.xml'];
    const failed = await haptic(words);
    expect(failed.status).toBe(2);
    expect(failed.err).toContain('cannot write /proc/x/y.xml');
    expect(failed.out).toContain('1 passed');
  });

  it('leaves nothing behind', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'haptic-leftovers-'));
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
    vi.stubEnv('TMPDIR', dir);
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(await haptic(['test', EXAMPLE, '--haproxy', newest])).toMatchObject({ status: 0 });
    expect(readdirSync(dir)).toStrictEqual([]);
  });
});

describe('a template that never ends', () => {
  const endless = () => directory(configuration({ slow: {} }, 'endless'));

  it.each(['render', 'validate', 'diff'])('is ended and told by haptic %s', async (name) => {
    const path = endless();
    const { status, out, err } = await haptic(
      [name, path, ...(name === 'diff' ? [path] : []), '--timeout', '2'],
      { HAPROXY: newest },
    );
    expect(status).toBe(1);
    expect(out).toBe(name === 'validate' ? '1 error in the input; nothing was rendered\n' : '');
    expect(err).toMatch(
      /^error: ConfigTooSlow: Rendering the objects took longer than 2 s and was/,
    );
  });

  it('G14: lets Ctrl-C end the program at once, and leaves no process behind', async () => {
    const child = spawn(process.execPath, [MAIN, 'test', endless(), '--haproxy', newest], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {},
      // As from a terminal: the signal goes to the whole group.
      detached: true,
    });
    const err = text(child.stderr);
    const ended = once(child, 'exit');
    const started = new Promise<void>((resolve) => {
      child.stdout.once('data', () => resolve());
    });
    await started;
    const { pid = 0 } = child;
    // A signal to the terminal's group is for the program, which decides what becomes of its children; what has just been forked
    // is in that group for a moment.
    const groups = (): readonly boolean[] => childrenOf(pid).map((one) => groupOf(one) !== pid);
    await expect.poll(groups, { timeout: 20_000 }).toContain(true);
    await expect.poll(groups).not.toContain(false);
    const children = childrenOf(pid);
    const at = performance.now();
    process.kill(-pid, 'SIGINT');
    expect(await ended).toStrictEqual([130, null]);
    expect(performance.now() - at).toBeLessThan(3_000);
    expect(await err).toBe('haptic test: interrupted\n');
    await expect.poll(() => children.filter(isRunning)).toStrictEqual([]);
  });
});

const childrenOf = (pid: number): readonly number[] =>
  readFileSync(`/proc/${String(pid)}/task/${String(pid)}/children`, 'utf8')
    .split(' ')
    .filter((word) => word !== '')
    .map(Number);

const groupOf = (pid: number): number =>
  Number(/\) \S \d+ (\d+) /.exec(readFileSync(`/proc/${String(pid)}/stat`, 'utf8'))?.[1]);

/** A zombie runs no more. */
const isRunning = (pid: number): boolean => {
  try {
    return !readFileSync(`/proc/${String(pid)}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
};
