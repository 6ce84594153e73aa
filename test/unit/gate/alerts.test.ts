import { describe, expect, it } from 'vitest';
import { judgeRun, parseAlerts } from '../../../src/gate/alerts.ts';

const NOTICES = `[NOTICE]   (11922) : haproxy version is 3.0.11-1+deb13u5
[NOTICE]   (11922) : path to executable is /usr/sbin/haproxy
`;
const SUMMARY = `[ALERT]    (11922) : config : Error(s) found in configuration file : /m/haproxy.cfg
[ALERT]    (11922) : config : Fatal errors found in configuration.
`;

const alertsOf = (message: string) => parseAlerts(`${NOTICES}${message}\n${SUMMARY}`);
const refuse = (stderr: string, status: number | null = 1) =>
  judgeRun({ status, signal: null, stderr: NOTICES + stderr });

describe('parseAlerts', () => {
  it('reads file, line and words of an unknown keyword', () => {
    expect(
      alertsOf(
        "[ALERT]    (9) : config : parsing [/m/haproxy.cfg:10] : unknown keyword 'fooo' in 'frontend' section",
      ),
    ).toEqual([
      {
        severity: 'alert',
        place: { file: '/m/haproxy.cfg', line: 10 },
        names: [],
        text: "unknown keyword 'fooo' in 'frontend' section",
      },
    ]);
  });

  it.each([
    [
      '3.0',
      "[ALERT]    (9) : config : Proxy 'fe': unable to find required default_backend: 'nope'.",
    ],
    ['3.4', "[ALERT]    (9) : Proxy 'fe': unable to find required default_backend: 'nope'."],
  ])('reads the names of a missing backend as %s says it', (_version, message) => {
    expect(alertsOf(message)).toMatchObject([{ place: undefined, names: ['fe', 'nope'] }]);
  });

  it('reads a server that is named together with its kind', () => {
    expect(
      alertsOf(
        "[ALERT]    (9) : config : [/m/haproxy.cfg:11] : 'server be/b' : invalid port '99999'",
      ),
    ).toMatchObject([
      { place: { line: 11 }, names: ['be/b'], text: "'server be/b' : invalid port '99999'" },
    ]);
  });

  it.each([
    ['out of memory before the section is known', '(null)parsing [/m/haproxy.cfg:7979] : proxy'],
    ['a capital letter and no space', 'config : Parsing [/m/haproxy.cfg:7979]: backend'],
    ['no space before the colon', 'config : parsing [/m/haproxy.cfg:7979]: http-request'],
  ])('finds the place with %s', (_name, start) => {
    expect(alertsOf(`[ALERT]    (9) : ${start} 'a' x`)).toMatchObject([{ place: { line: 7979 } }]);
  });

  it('takes a place only from the start of a message, not from what a user wrote', () => {
    expect(
      alertsOf("[ALERT] (9) : config : unknown '[/m/other.cfg:1] :'")[0]?.place,
    ).toBeUndefined();
  });

  it('keeps lines that belong to one message together', () => {
    const [alert] = alertsOf('[ALERT]    (9) : config : parsing [/m/a:1] : first\n  second');
    expect(alert?.text).toBe('first\n  second');
  });

  it('leaves notices and summaries out and keeps warnings apart', () => {
    const [warning] = alertsOf('[WARNING]  (9) : config : parsing [/m/a:3] : deprecated');
    expect(alertsOf('')).toEqual([]);
    expect(warning).toMatchObject({ severity: 'warning', place: { line: 3 } });
  });

  it('survives anything', () => {
    expect(parseAlerts('\0garbage\n[ALERT\n[ALERT] () : x\n')).toEqual([]);
  });
});

describe('judgeRun', () => {
  it('passes on exit status 0, whatever was printed', () => {
    expect(refuse("[WARNING] (9) : config : parsing [/m/a:3] : deprecated 'x'", 0)).toEqual({
      result: 'passed',
    });
  });

  it('refuses when an alert names a line', () => {
    const verdict = refuse(`[ALERT]    (9) : config : parsing [/m/a:3] : bad\n${SUMMARY}`);
    expect(verdict).toMatchObject({ result: 'refused', alerts: [{ text: 'bad' }] });
  });

  it('refuses when an alert without a place names a proxy', () => {
    const verdict = refuse(
      "[ALERT] (9) : Proxy 'fe': unable to find required use_backend: 'nope2'.",
    );
    expect(verdict).toMatchObject({ result: 'refused' });
  });

  it('refuses a file that is missing', () => {
    const verdict = refuse(
      "[ALERT] (9) : config : parsing [/m/a:10] : error detected in frontend 'fe' while parsing 'http-request set-var(txn.x)' rule : invalid args in converter 'map' : failed to open pattern file <nofile.map>.",
    );
    expect(verdict).toMatchObject({ result: 'refused' });
  });

  it.each([
    '(null)out of memory.',
    "config : parsing [big.cfg:10172] : proxy 'b3388': out of memory",
    'config : Loading big.cfg: file too long, cannot allocate memory.',
    "Failed to allocate pool 'ot_runtime_context' of size 96 : Cannot allocate memory. Aborting.",
    'failed to allocate lb_nodes for server a.',
    "config : parsing [/m/a:3] : 'bind :1' : can't allocate memory",
    "config : parsing [/m/a:9] : 'bind :443' : unable to stat SSL certificate : Permission denied",
    'config : [/m/a:9] : cannot open socket: Too many open files',
    'Not enough memory to store 3 file descriptors',
  ])('cannot say when the machine is to blame: %s', (message) => {
    const verdict = refuse(`[ALERT]    (9) : ${message}\n${SUMMARY}`);
    expect(verdict).toMatchObject({ result: 'inconclusive' });
  });

  it('blames the machine also when another alert names a line', () => {
    const verdict = refuse(
      '[ALERT] (9) : config : parsing [/m/a:3] : bad\n[ALERT] (9) : (null)out of memory.',
    );
    expect(verdict).toEqual({ result: 'inconclusive', cause: 'out of memory.' });
  });

  it('takes messages that HAProxy had no memory for as the lack of memory that they are', () => {
    const alert = '[ALERT]    (1) : config : (null)';
    expect(refuse(`${alert}${alert}`)).toEqual({
      result: 'inconclusive',
      cause: `memory ran out, also for the message: ${alert}${alert}`,
    });
  });

  it.each([
    "config : Proxy 'out of memory': unable to find required default_backend: 'permission denied'.",
    "config : parsing [/m/a:3] : unknown keyword 'x' out of memory 'y' in 'global' section",
    'config : parsing [/m/a:3] : invalid args : failed to open pattern file <out of memory.map>.',
  ])('is not talked out of a refusal by names: %s', (message) => {
    expect(refuse(`[ALERT]    (9) : ${message}`)).toMatchObject({ result: 'refused' });
  });

  it('cannot say when a host name could not be looked up for want of a network', () => {
    const stderr =
      "[ALERT] (9) : config : parsing [/m/a:2] : log : invalid address: 'log.example.com' in 'log.example.com:514'";
    const run = { status: 1, signal: null, stderr };
    expect(judgeRun(run)).toMatchObject({ result: 'refused' });
    expect(judgeRun(run, { lookUps: false })).toEqual({
      result: 'inconclusive',
      cause:
        'log.example.com cannot be looked up, since checks run without network; write its address',
    });
  });

  it('refuses what is no host name also without a network', () => {
    const stderr =
      "[ALERT] (9) : config : parsing [/m/a:2] : 'bind' : invalid address: '1.2.3.4.5' in '1.2.3.4.5:80'";
    const run = { status: 1, signal: null, stderr };
    expect(judgeRun(run, { lookUps: false })).toMatchObject({ result: 'refused' });
  });

  it('cannot say when no alert names anything', () => {
    expect(refuse(SUMMARY)).toMatchObject({
      result: 'inconclusive',
      cause: expect.stringContaining('Fatal errors found in configuration') as string,
    });
  });

  it('cannot say on another exit status', () => {
    const words = 'Configuration file has no error but will not start (no listener) => exit(2).';
    expect(refuse(words, 2)).toEqual({
      result: 'inconclusive',
      cause: `the checker ended with status 2: ${words}`,
    });
  });

  it('cannot say when a signal ended it, even after an alert', () => {
    const stderr = '[ALERT]    (9) : config : parsing [/m/a:3] : bad';
    expect(judgeRun({ status: null, signal: 'SIGKILL', stderr })).toMatchObject({
      result: 'inconclusive',
      cause: expect.stringContaining('SIGKILL') as string,
    });
  });
});
