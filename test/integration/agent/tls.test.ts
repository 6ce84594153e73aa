import { mkdtempSync, readFileSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { once } from 'node:events';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { AgentError } from '../../../src/ports.ts';
import { createAgentClient } from '../../../src/sinks/agent-client.ts';
import { createAgentTls } from '../../../src/sinks/agent-tls.ts';
import { Authority, type Issued } from '../../support/authority.ts';
import { haproxyVersions, waitFor } from '../../support/haproxy.ts';
import type { TestKeyPair } from '../../support/key-pairs.ts';
import { projectSecret } from '../../support/secret-volume.ts';
import { Bed, TIMEOUT_MS, TOKEN, requestOf, valueOf } from './agent-bed.ts';

const [oldest] = haproxyVersions();
const AGENT = 'haptic-agent';
const CONTROLLER = 'haptic-controller';
const EXPIRED = { fromMs: -7_200_000, toMs: -3_600_000 };

describe('an agent over mutual TLS (S81)', () => {
  let bed: Bed;
  let dir: string;
  let own: Authority;
  let other: Authority;
  let problems: string[];

  const agentDir = (): string => join(dir, 'agent');
  const controllerDir = (): string => join(dir, 'controller');
  const place = (to: string, pair: TestKeyPair, ca: string): void => {
    projectSecret(to, { 'tls.crt': pair.certificate, 'tls.key': pair.key, 'ca.crt': ca });
  };
  /** The number of times the agent has logged it. */
  const logged = (message: string | RegExp): number =>
    bed.agent.lines.filter((line) => line.match(message) !== null).length;
  const placeAgent = async (issued: Partial<Issued> = {}, by = own, ca = own): Promise<void> => {
    const before = logged('credentials replaced');
    place(agentDir(), await by.issue({ names: [AGENT], ...issued }), ca.certificate);
    await waitFor(() => logged('credentials replaced') > before, { what: 'the rotation' });
  };
  const useClient = async (pair: TestKeyPair, ca = own): Promise<void> => {
    await bed.client.close();
    place(controllerDir(), pair, ca.certificate);
    const tls = await createAgentTls({
      dir: controllerDir(),
      serverName: AGENT,
      onProblem: (message) => problems.push(message),
    });
    bed.client = createAgentClient({ tls, timeoutMs: TIMEOUT_MS });
  };
  const useController = async (issued: Partial<Issued> = {}, by = own): Promise<void> =>
    useClient(await by.issue({ names: [CONTROLLER], ...issued }));
  /** The refusal of an apply that would otherwise be taken. */
  const refused = async (): Promise<AgentError> => {
    const epoch = 1_000;
    const error: unknown = await bed.apply({ files: bed.files(), epoch }).catch((e: unknown) => e);
    if (!(error instanceof AgentError)) throw new Error('it was not refused');
    return error;
  };
  /** Connects as the options say, asks for the state and gives what comes back until the end. */
  const raw = async (options: ConnectionOptions): Promise<string> => {
    const { hostname, port } = new URL(bed.agent.url);
    const socket: TLSSocket = connect({
      host: hostname,
      port: Number(port),
      ca: own.certificate,
      servername: AGENT,
      ...options,
    });
    let text = '';
    socket.on('data', (part: Buffer) => (text += part.toString()));
    socket.on('error', (error) => (text += error.message));
    socket.write('GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    await new Promise((resolve) => socket.on('close', resolve));
    return text;
  };

  beforeAll(async () => {
    own = await Authority.root('own');
    other = await Authority.root('other');
  });

  beforeEach(async () => {
    problems = [];
    dir = mkdtempSync(join(tmpdir(), 'tls-'));
    place(agentDir(), await own.issue({ names: [AGENT] }), own.certificate);
    bed = await Bed.start(oldest?.binary ?? '', {
      tlsDir: agentDir(),
      args: ['--metrics-listen', '127.0.0.1:0'],
    });
    await useController();
  });

  afterEach(async () => {
    await bed.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  const metrics = async (): Promise<string> => {
    const line = bed.agent.lines.find((one) => one.includes('"listening"')) ?? '{}';
    const { metricsListen } = JSON.parse(line) as { readonly metricsListen?: string };
    return (await fetch(`http://${metricsListen ?? ''}/metrics`)).text();
  };

  test('serves a controller that shows the right certificate, without a token', async () => {
    expect((await bed.apply({ files: bed.files() })).outcome).toBe('reload');
    expect((await bed.state()).roles.running).not.toBeNull();
    const expiry = /expiry_timestamp_seconds (\d+)$/m.exec(await metrics())?.[1];
    expect(Number(expiry) * 1_000).toBeGreaterThan(Date.now());
    expect(logged('refused')).toBe(0);
  });

  test('refuses every other client before anything is done for it, and logs why', async () => {
    const good = await bed.state();
    const cases: readonly (readonly [string, () => Promise<void>, RegExp, RegExp])[] = [
      [
        'of another authority',
        () => useController({}, other),
        /ca\.crt holds the authority of the controller/,
        /does not hold: UNABLE_TO_VERIFY_LEAF_SIGNATURE/,
      ],
      [
        'expired',
        () => useController(EXPIRED),
        /certificate, which expired at 20/,
        /CERT_HAS_EXPIRED/,
      ],
      [
        'of another name',
        () => useController({ names: ['haptic-controller.evil', AGENT] }),
        /not for haptic-controller but for DNS:haptic-controller\.evil/,
        /not for haptic-controller but for/,
      ],
      [
        'with a wildcard',
        () => useController({ names: ['*'] }),
        /not for haptic-controller but for DNS:\*/,
        /not for haptic-controller but for/,
      ],
      ['without TLS', withToken, /other side closed/, /speaks HTTP without TLS/],
    ];
    for (const [what, client, says, logs] of cases) {
      await client();
      const error = await refused();
      expect(error.message, what).toMatch(says);
      expect(error.code, what).toBe(what === 'without TLS' ? 'unreachable' : 'unauthorized');
      await waitFor(() => logged(logs) > 0, { what: `the log to tell of ${what}` });
    }
    await useController();
    expect(await bed.state()).toEqual(good);
    const text = await metrics();
    expect(text).toMatch(/refused_connections_total\{reason="certificate"\} 1/);
    expect(text).toMatch(/refused_connections_total\{reason="expired"\} 1/);
    expect(text).toMatch(/refused_connections_total\{reason="name"\} 2/);
    expect(text).toMatch(/refused_connections_total\{reason="not-tls"\} 1/);
  });

  const withToken = async (): Promise<void> => {
    await bed.client.close();
    const client = createAgentClient({ token: TOKEN, timeoutMs: TIMEOUT_MS });
    const plain = bed.pod.url.replace('https', 'http');
    bed.client = {
      ...client,
      apply: (pod, request) => client.apply({ ...pod, url: plain }, request),
    };
  };

  test('refuses clients without a certificate and older versions of TLS', async () => {
    const { certificate, key } = await own.issue({ names: [CONTROLLER] });
    expect(await raw({ cert: certificate, key })).toMatch(/^HTTP\/1\.1 200 /);
    expect(await raw({})).not.toContain('HTTP/1.1');
    expect(await raw({ cert: certificate, key, maxVersion: 'TLSv1.2' })).toMatch(
      /protocol version/,
    );
    await waitFor(() => logged('the client showed no certificate') === 1);
    await waitFor(() => logged('the client does not speak TLS 1.3') === 1);
  });

  test('takes a certificate of an intermediate authority that comes with it', async () => {
    const middle = await own.intermediate('middle');
    const leaf = await middle.issue({ names: [CONTROLLER] });
    await useClient({ certificate: leaf.certificate + middle.certificate, key: leaf.key });
    expect((await bed.apply({ files: bed.files() })).outcome).toBe('reload');
  });

  test('never takes up a former session in place of a handshake', async () => {
    const { certificate, key } = await own.issue({ names: [CONTROLLER] });
    const { hostname, port } = new URL(bed.agent.url);
    let session: Buffer | undefined;
    for (let round = 0; round < 2; round += 1) {
      const socket = connect({
        host: hostname,
        port: Number(port),
        ca: own.certificate,
        servername: AGENT,
        cert: certificate,
        key,
        ...(session === undefined ? {} : { session }),
      });
      socket.on('session', (ticket: Buffer) => (session = ticket));
      await once(socket, 'secureConnect');
      expect(socket.isSessionReused()).toBe(false);
      socket.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n');
      await once(socket, 'data');
      socket.destroy();
    }
  });

  test('is refused by a controller that it cannot convince', async () => {
    const cases: readonly (readonly [string, () => Promise<void>, RegExp])[] = [
      [
        'another name',
        () => placeAgent({ names: [CONTROLLER] }),
        /controller refuses the agent's certificate: it is not for haptic-agent but for DNS:haptic-c/,
      ],
      ['expired', () => placeAgent(EXPIRED), /CERT_HAS_EXPIRED; check the end/],
      [
        'another authority',
        () => placeAgent({}, other),
        /UNABLE_TO_VERIFY_LEAF_SIGNATURE; check that the controller's ca\.crt/,
      ],
    ];
    for (const [what, rotate, says] of cases) {
      await rotate();
      await useController();
      const error = await refused();
      expect(error.message, what).toMatch(says);
      expect(error.code, what).toBe('unauthorized');
    }
    await placeAgent();
    expect((await bed.state()).highestEpoch).toBe(0);
  });

  test('serves on with an expired certificate, and tells', async () => {
    await placeAgent(EXPIRED);
    await waitFor(() => logged('expired at 20') === 1);
    const expiry = /expiry_timestamp_seconds (\d+)$/m.exec(await metrics())?.[1];
    expect(Number(expiry) * 1_000).toBeLessThan(Date.now());
    const { certificate, key } = await own.issue({ names: [CONTROLLER] });
    expect(await raw({ cert: certificate, key, rejectUnauthorized: false })).toMatch(/ 200 /);
  });

  test('ends an older connection with the answer to its next request', async () => {
    const { hostname, port } = new URL(bed.agent.url);
    const { certificate: cert, key } = await own.issue({ names: [CONTROLLER] });
    const to = { host: hostname, port: Number(port), ca: own.certificate, servername: AGENT };
    const socket = connect({ ...to, cert, key });
    const ask = async (): Promise<string> => {
      socket.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n');
      const [answer] = (await once(socket, 'data')) as [Buffer];
      return answer.toString();
    };
    expect(await ask()).toMatch(/connection: keep-alive/i);
    await placeAgent();
    const closed = once(socket, 'close');
    expect(await ask()).toMatch(/^HTTP\/1\.1 200 [^]*connection: close/i);
    await closed;
  });

  test('serves the older connections no more once their authority is gone', async () => {
    await bed.state();
    await placeAgent({}, own, other);
    const error = await refused();
    expect(error.code).toBe('unauthorized');
    expect(error.message).toMatch(/has expired, or its authority is not in ca\.crt any more/);
    expect((await refused()).message).toMatch(/the agent ended the connection/);
  });

  test('a controller with certificates never speaks without TLS', async () => {
    const pod = { ...bed.pod, url: bed.agent.url.replace('https', 'http') };
    const call = bed.client.apply(pod, requestOf({ files: bed.files() }));
    await expect(valueOf(call)).rejects.toThrow('https only');
  });

  test('applies go on while certificates and authorities of both sides are replaced', async () => {
    const files = bed.files({ web: ['s1 127.0.0.1:9'] });
    await bed.apply({ files });
    const end = new AbortController();
    let applies = 0;
    const failures: unknown[] = [];
    const apply = async (): Promise<void> => {
      const weight = (applies % 200) + 1;
      const operation = { kind: 'server_weight', backend: 'web', server: 's1', weight } as const;
      const operations = [operation];
      applies += 1;
      await bed
        .apply({ files, mode: 'auto', reload: false, send: [], operations, sequence: applies })
        .catch((error: unknown) => failures.push(error));
    };
    const running = (async (): Promise<void> => {
      while (!end.signal.aborted) {
        await apply();
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    })();
    const steps: readonly (readonly [Authority, readonly Authority[]])[] = [
      [own, [own]],
      [own, [own, other]],
      [other, [own, other]],
      [other, [other]],
      [other, [other]],
    ];
    for (const [signer, trusted] of steps) {
      const ca = trusted.map(({ certificate }) => certificate).join('');
      const rotations = logged('credentials replaced');
      const before = applies;
      place(agentDir(), await signer.issue({ names: [AGENT] }), ca);
      place(controllerDir(), await signer.issue({ names: [CONTROLLER] }), ca);
      await waitFor(() => logged('credentials replaced') > rotations, { what: 'the rotation' });
      await waitFor(() => applies >= before + 10, { what: 'ten applies' });
    }
    end.abort();
    await running;
    expect(failures).toEqual([]);
    expect(problems).toEqual([]);
    expect(applies).toBeGreaterThan(50);
    const { certificate, key } = await own.issue({ names: [CONTROLLER] });
    expect(await raw({ cert: certificate, key, ca: other.certificate })).not.toContain('HTTP/1.1');
  });

  test('a half-written replacement changes nothing until it is whole', async () => {
    const pair = await own.issue({ names: [AGENT] });
    const write = (name: string, text: string): void => {
      const path = join(agentDir(), name);
      unlinkSync(path);
      writeFileSync(path, text);
    };
    const replaced = logged('credentials replaced');
    write('tls.crt', pair.certificate);
    await waitFor(() => logged('tls.key does not belong to the first certificate') === 1);
    write('tls.key', pair.key.slice(0, pair.key.length / 2));
    await waitFor(() => logged('tls.key holds no whole private key') === 1);
    expect((await bed.apply({ files: bed.files() })).outcome).toBe('reload');
    await useController();
    await bed.state();
    expect(logged('credentials replaced')).toBe(replaced);
    write('tls.key', pair.key);
    await waitFor(() => logged('credentials replaced') === replaced + 1);
    await useController();
    await bed.state();
    expect(bed.agent.lines.join('\n')).not.toContain(pair.key.split('\n')[1]);
  });

  test('a controller keeps its credentials while the new ones are broken', async () => {
    await bed.state();
    const whole = readFileSync(join(controllerDir(), 'ca.crt'), 'utf8');
    const { certificate, key } = await own.issue({ names: [CONTROLLER] });
    place(controllerDir(), { certificate, key }, whole.slice(0, whole.length / 2));
    await waitFor(() => problems.length > 0, { what: 'the problem' });
    expect(problems).toEqual([expect.stringMatching(/ca\.crt holds no whole certificate$/)]);
    await bed.state();
  });
});
