import { describe, expect, it } from 'vitest';
import { CommandError, runCommand, type Command } from '../../../src/cli/command.ts';
import { haptic } from '../../support/terminal.ts';

describe('haptic', () => {
  it.each([['--help'], ['-h'], ['help']])('shows all commands with %s', async (word) => {
    const { status, out, err } = await haptic([word]);
    expect(status).toBe(0);
    expect(err).toBe('');
    for (const name of ['up', 'render', 'diff', 'validate', 'test']) {
      expect(out).toMatch(new RegExp(`^  ${name} +\\S.*$`, 'm'));
    }
    expect(out).toContain('exit status 0 good, 1 bad input, 2 could not run');
  });

  it('shows the same without a command, as a failure', async () => {
    const { status, out } = await haptic([]);
    expect(status).toBe(2);
    expect(out).toContain('usage: haptic COMMAND');
  });

  it.each(['run', 'constructor', '__proto__', ''])('knows no command %s', async (name) => {
    const { status, err } = await haptic([name]);
    expect(status).toBe(2);
    expect(err).toBe(`haptic: there is no command '${name}'; see haptic --help\n`);
  });

  it.each([
    ['up', 'DIR', ['--http-port PORT', '--state-dir DIR', '--haproxy PATH', '--demo', '8080']],
    ['render', 'DIR', ['--out DIR', '--haproxy-version X.Y']],
    ['diff', 'DIR1 DIR2', ['--base-dir DIR']],
    ['validate', 'DIR', ['--haproxy PATH', '--timeout SECONDS', '--memory MIB']],
    ['test', 'DIR', ['--filter GLOB', '--junit FILE', '--haproxy PATH', '--timeout SECONDS']],
  ])('%s explains itself', async (name, positionals, words) => {
    for (const flag of ['--help', '-h']) {
      const { status, out, err } = await haptic([name, flag]);
      expect({ status, err }).toStrictEqual({ status: 0, err: '' });
      expect(out).toContain(`usage: haptic ${name} ${positionals} [options]`);
      for (const word of [...words, '--output text|json', '--help']) expect(out).toContain(word);
    }
  });

  it('tells its version', async () => {
    expect(await haptic(['--version'])).toStrictEqual({
      status: 0,
      out: 'haptic 1.2.3\n',
      err: '',
    });
  });

  it.each([
    [['render', 'a', 'b', 'c', '--help'], 'usage: haptic render DIR'],
    [['render', '--foo', '-h'], 'usage: haptic render DIR'],
    [['render', '--out', '--help'], 'usage: haptic render DIR'],
    [['--help', 'render'], 'usage: haptic render DIR'],
    [['help', 'diff'], 'usage: haptic diff DIR1 DIR2'],
    [['--foo', '--help'], 'usage: haptic COMMAND'],
  ])('%j shows help, whatever else is wrong', async (words, text) => {
    const { status, out, err } = await haptic(words);
    expect({ status, err }).toStrictEqual({ status: 0, err: '' });
    expect(out).toContain(text);
  });

  it('takes no word after -- for a flag', async () => {
    const { status, err } = await haptic(['render', '--', '--help']);
    expect(status).toBe(1);
    expect(err).toContain('--help is no directory');
  });

  it.each([
    [['rendr', 'x'], "haptic: there is no command 'rendr'; nearest: render; see haptic --help\n"],
    [['--foo'], 'haptic: there is no option --foo; see haptic --help\n'],
  ])('%j names the nearest command', async (words, line) => {
    expect(await haptic(words)).toStrictEqual({ status: 2, out: '', err: line });
  });

  it.each([
    [['up', 'x', '--http-prot', '1'], 'there is no option --http-prot; nearest: --http-port; see'],
    [['up', 'x', '--foo'], 'there is no option --foo; see'],
    [['up', 'x', '-z'], 'there is no option -z; see'],
    [['up', 'x', '--__proto__'], 'there is no option --__proto__; see'],
    [['up', 'x', '--haproxy', '--demo'], '--haproxy needs a value: --haproxy PATH; see'],
    [['up'], 'expected DIR'],
    [['diff', 'x'], 'expected DIR1 DIR2'],
    [['render', 'x', 'y'], 'expected DIR'],
    [['render', 'x', '--out'], '--out needs a value: --out DIR; see'],
    [['up', 'x', '--demo=yes'], '--demo takes no value; see'],
    [['render', 'x', '--output', 'yaml'], '--output takes text or json'],
  ])('%j is refused with a hint', async (words, message) => {
    const { status, out, err } = await haptic(words);
    expect(status).toBe(2);
    expect(out).toBe('');
    expect(err).toContain(message);
    expect(err).toMatch(new RegExp(`^haptic ${words[0] ?? ''}: .*; see haptic .* --help\n$`, 's'));
  });

  it.each(['up', 'render', 'validate'])('%s names a directory that is none', async (name) => {
    const { status, err } = await haptic([name, '/nowhere'], { HAPROXY: process.execPath });
    // `validate` looks for a HAProxy first, and Node.js is none.
    expect(status).toBe(name === 'validate' ? 2 : 1);
    expect(err).toMatch(/^haptic \w+: .*\n$/);
    if (name !== 'validate') expect(err).toContain('/nowhere is no directory; name one that holds');
  });
});

describe('a command', () => {
  const failing = (error: Error): Command => ({
    name: 'fail',
    arguments: [],
    summary: 'Fail',
    options: {},
    run: () => Promise.reject(error),
  });
  const run = async (command: Command) => {
    let err = '';
    const status = await runCommand({ commands: [command], version: '1' }, [command.name], {
      out: () => undefined,
      err: (text) => (err += text),
      isTerminal: false,
      environment: {},
      signal: new AbortController().signal,
    });
    return { status, err };
  };

  it('that cannot run tells why in one line', async () => {
    expect(await run(failing(new CommandError('no room')))).toStrictEqual({
      status: 2,
      err: 'haptic fail: no room\n',
    });
    expect((await run(failing(new CommandError('bad', 1)))).status).toBe(1);
  });

  it('that fails unexpectedly says so, with the place', async () => {
    const { status, err } = await run(failing(new TypeError('oops')));
    expect(status).toBe(2);
    expect(err).toMatch(/^haptic fail: unexpected: TypeError: oops\n +at /);
  });
});
