import { describe, expect, test } from 'vitest';
import { parseCommandLine } from '../../../agent/options.ts';

describe('the command line of the agent', () => {
  test('needs a base directory and one way to know the controller', () => {
    expect(parseCommandLine([])).toMatchObject({ kind: 'wrong' });
    expect(parseCommandLine(['--help'])).toEqual({ kind: 'help' });
    expect(parseCommandLine(['--base-dir', '/b', '--token-file', '/t'])).toEqual({
      kind: 'run',
      options: {
        baseDir: '/b',
        config: 'haproxy.cfg',
        masterSocket: '/b/haproxy-master.sock',
        workerSocket: '/b/haproxy-worker.sock',
        stateFile: '/b/.haptic-agent.json',
        listen: { host: '127.0.0.1', port: 5555 },
        metricsListen: undefined,
        access: { kind: 'token', tokenFile: '/t' },
        bootstrap: undefined,
        reloadIntervalMs: 5000,
        bodyIdleMs: 10_000,
      },
    });
  });

  test('takes what a pod of the chart says', () => {
    const words =
      '--base-dir /etc/haproxy --listen 0.0.0.0:5555 --metrics-listen 0.0.0.0:5557 ' +
      '--tls-dir /var/run/haptic/tls --client-name haptic-controller --bootstrap /b/haproxy.cfg ' +
      '--reload-interval-ms 5000';
    expect(parseCommandLine(words.split(' '))).toMatchObject({
      kind: 'run',
      options: {
        listen: { host: '0.0.0.0', port: 5555 },
        metricsListen: { host: '0.0.0.0', port: 5557 },
        access: {
          kind: 'mutual-tls',
          dir: '/var/run/haptic/tls',
          clientName: 'haptic-controller',
        },
        bootstrap: '/b/haproxy.cfg',
      },
    });
  });

  test.each([
    ['--listen', 'nowhere'],
    ['--listen', 'host:99999'],
    ['--listen', 'host:'],
    ['--reload-interval-ms', '-1'],
    ['--reload-interval-ms', ''],
    ['--body-idle-ms', 'long'],
    ['--config', '../haproxy.cfg'],
    ['--client-name', 'haptic-controller'],
    ['--no-such', 'option'],
  ])('%s %j is refused with a reason', (...words) => {
    const line = parseCommandLine(['--base-dir', '/b', '--token-file', '/t', ...words]);
    expect(line.kind).toBe('wrong');
  });

  const refusal = (words: string): string => {
    const line = parseCommandLine(['--base-dir', '/b', ...words.split(' ')]);
    return line.kind === 'wrong' ? line.message : 'not refused';
  };

  test.each(['0.0.0.0:5555', ':5555', '[::]:5555', '10.0.0.1:5555', 'example.com:1', '127.evil:1'])(
    'S81: a token is no way in from outside: %s',
    (address) => {
      expect(refusal(`--token-file /t --listen ${address}`)).toMatch(/needs --tls-dir/);
      expect(refusal(`--tls-dir /d --listen ${address}`)).toBe('not refused');
    },
  );

  test.each(['127.0.0.1:0', '127.1.2.3:5555', '[::1]:5555', 'localhost:5555'])(
    'a token is enough on the loopback address %s',
    (address) => expect(refusal(`--token-file /t --listen ${address}`)).toBe('not refused'),
  );

  test('says which option is missing, superfluous or no name', () => {
    expect(refusal('--config haproxy.cfg')).toBe('--tls-dir or --token-file is needed');
    expect(refusal('--tls-dir /d --token-file /t')).toMatch(/exclude each other/);
    expect(refusal('--tls-dir /d --client-name *.example')).toMatch(/is no DNS name/);
    expect(refusal('--tls-dir /d --client-name .example')).toMatch(/is no DNS name/);
  });
});
