/** Certificates, authorities and certificate lists on a worker that is not started anew, seen by TLS handshakes. */
import { X509Certificate } from 'node:crypto';
import { connect } from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ApplyOutcome } from '../../../src/protocol/answers.ts';
import type { CrtListEntry, Operation } from '../../../src/protocol/protocol.ts';
import { Authority } from '../../support/authority.ts';
import { freePort, haproxyVersions } from '../../support/haproxy.ts';
import type { TestKeyPair } from '../../support/key-pairs.ts';
import { Bed, sha256, type Files } from './agent-bed.ts';

const LIST = 'certs/all.list';
const pemOf = ({ certificate, key }: TestKeyPair): string => `${certificate}\n${key}\n`;
/** What tells certificates apart. */
const mark = (pair: TestKeyPair): string => new X509Certificate(pair.certificate).fingerprint256;
const line = (certificate: string, ...filters: readonly string[]): CrtListEntry => ({
  certificate,
  options: [],
  filters,
});
const textOf = (lines: readonly CrtListEntry[]): string =>
  lines.map(({ certificate, filters }) => `${[certificate, ...filters].join(' ')}\n`).join('');

let root: Authority;
let other: Authority;
const pairs: TestKeyPair[] = [];

beforeAll(async () => {
  [root, other] = [await Authority.root('root'), await Authority.root('other')];
  for (const name of ['default', 'a', 'b', 'c']) {
    pairs.push(await root.issue({ names: [`${name}.example`] }));
  }
});

describe.each(haproxyVersions())('TLS operations on HAProxy $version', ({ binary }) => {
  let bed: Bed;
  let port: number;
  let files: Files;
  let pid: number;

  beforeAll(async () => {
    bed = await Bed.start(binary);
    port = await freePort();
  });
  afterAll(() => bed.stop());

  const START = [line('certs/d.pem'), line('certs/a.pem', 'a.example')];

  beforeEach(async () => {
    const extra = [
      'frontend tls',
      `  bind 127.0.0.1:${port} ssl crt-list ${LIST} ca-file certs/ca.crt verify optional`,
      '  http-request return status 200 content-type text/plain lf-string %[ssl_c_verify]',
    ].join('\n');
    files = bed.files({
      extra,
      more: {
        'certs/d.pem': pemOf(pairs[0]!),
        'certs/a.pem': pemOf(pairs[1]!),
        'certs/ca.crt': root.certificate,
        [LIST]: textOf(START),
        run: String(Math.random()),
      },
    });
    expect(await bed.apply({ files })).toMatchObject({ outcome: 'reload' });
    pid = (await bed.state()).haproxy.workerPid;
  });

  const send = (more: Files, operations: readonly Operation[]): Promise<ApplyOutcome> => {
    files = { ...files, ...more };
    return bed.apply({ files, mode: 'auto', reload: false, operations });
  };
  /** All of them are executed, by the worker that was there before. */
  const runs = async (more: Files, operations: readonly Operation[]): Promise<void> => {
    const { length } = operations;
    expect(await send(more, operations)).toMatchObject({
      ...{ outcome: 'runtime', failedOperations: [], operationsRun: length },
    });
    expect((await bed.state()).haproxy.workerPid).toBe(pid);
  };
  const put = (
    kind: Extract<Operation, { readonly file: string; readonly digest: string }>['kind'],
    file: string,
    pem: string,
  ): Operation => ({
    ...{ kind, file, digest: sha256(pem) },
  });

  /** Fingerprint of the certificate that a client of this name gets, and what the server thinks of the client's own. */
  const asked = (
    servername: string,
    client?: TestKeyPair,
  ): Promise<{ readonly certificate: string; readonly answer: string }> =>
    new Promise((resolve, reject) => {
      const own = client === undefined ? {} : { cert: client.certificate, key: client.key };
      const options = { host: '127.0.0.1', port, servername, rejectUnauthorized: false, ...own };
      const socket = connect(options, () => {
        const certificate = socket.getPeerCertificate().fingerprint256;
        let text = '';
        socket.on('data', (part: Buffer) => (text += part.toString()));
        socket.on('end', () => resolve({ certificate, answer: text.split('\r\n\r\n')[1] ?? '' }));
        socket.write('GET / HTTP/1.0\r\n\r\n');
      });
      socket.on('error', reject);
    });
  /** Whether a client gets an answer with its certificate: else the handshake, or what comes after it, fails. */
  const accepts = (client: TestKeyPair, name = 'a.example'): Promise<boolean> =>
    asked(name, client).then(
      ({ answer }) => answer === '0',
      () => false,
    );
  const served = async (name: string): Promise<string> => (await asked(name)).certificate;

  test('cert_set: a renewed certificate is served, whether by its name or as the default one', async () => {
    expect(await served('a.example')).toBe(mark(pairs[1]!));
    const [a, d] = [pemOf(pairs[2]!), pemOf(pairs[3]!)];
    await runs({ 'certs/a.pem': a, 'certs/d.pem': d }, [
      put('cert_set', 'certs/a.pem', a),
      put('cert_set', 'certs/d.pem', d),
    ]);
    expect(await served('a.example')).toBe(mark(pairs[2]!));
    expect(await served('nobody.example')).toBe(mark(pairs[3]!));
  });

  test('cert_add, crtlist_add, crtlist_delete, cert_remove: a name gets a certificate and loses it', async () => {
    const pem = pemOf(pairs[2]!);
    const entry = line('certs/b.pem', 'b.example', '*.b.example');
    await runs({ 'certs/b.pem': pem, [LIST]: textOf([...START, entry]) }, [
      put('cert_add', 'certs/b.pem', pem),
      { kind: 'crtlist_add', list: LIST, entry },
    ]);
    expect(await served('b.example')).toBe(mark(pairs[2]!));
    expect(await served('x.b.example')).toBe(mark(pairs[2]!));
    await runs({ [LIST]: textOf(START) }, [
      { kind: 'crtlist_delete', list: LIST, entry },
      { kind: 'cert_remove', file: 'certs/b.pem' },
    ]);
    expect(await served('b.example')).toBe(mark(pairs[0]!));
    expect(await bed.runtime('show ssl cert')).not.toContain('b.pem');
  });

  test('crtlist_delete takes the one line that is meant of those that name a certificate', async () => {
    const second = { ...line('certs/a.pem', 'b.example'), options: ['alpn', 'http/1.1'] };
    await runs({}, [{ kind: 'crtlist_add', list: LIST, entry: second }]);
    expect(await served('b.example')).toBe(mark(pairs[1]!));
    await runs({}, [{ kind: 'crtlist_delete', list: LIST, entry: START[1]! }]);
    expect(await served('a.example')).toBe(mark(pairs[0]!));
    expect(await served('b.example')).toBe(mark(pairs[1]!));
    await runs({}, [{ kind: 'crtlist_delete', list: LIST, entry: second }]);
    expect(await served('b.example')).toBe(mark(pairs[0]!));
  });

  test('ca_set: clients of another authority are accepted, those of the former are not', async () => {
    const client = await other.issue({ names: ['client'] });
    const former = await root.issue({ names: ['client'] });
    expect(await accepts(former)).toBe(true);
    await runs({ 'certs/ca.crt': other.certificate }, [
      put('ca_set', 'certs/ca.crt', other.certificate),
    ]);
    expect(await accepts(client)).toBe(true);
    await expect(asked('a.example', former)).rejects.toThrow(/unknown ca/);
  });

  test('ca_set: authorities that one command does not carry go in pieces', async () => {
    const bundle = `${root.certificate}\n`.repeat(30) + other.certificate;
    const client = await other.issue({ names: ['client'] });
    expect(await accepts(client)).toBe(false);
    await runs({ 'certs/ca.crt': bundle }, [put('ca_set', 'certs/ca.crt', bundle)]);
    expect(await accepts(client)).toBe(true);
    await runs({ 'certs/ca.crt': root.certificate }, [
      put('ca_set', 'certs/ca.crt', root.certificate),
    ]);
    expect(await accepts(client)).toBe(false);
  });

  test('ca_add, crtlist_add, ca_remove: a line of its own asks for another authority', async () => {
    const client = await other.issue({ names: ['client'] });
    const options = ['ca-file', 'certs/other.crt', 'verify', 'optional'];
    const entry = { ...line('certs/a.pem', 'b.example'), options };
    await runs({ 'certs/other.crt': other.certificate }, [
      put('ca_add', 'certs/other.crt', other.certificate),
      { kind: 'crtlist_add', list: LIST, entry },
    ]);
    expect(await accepts(client, 'b.example')).toBe(true);
    await runs({}, [
      { kind: 'crtlist_delete', list: LIST, entry },
      { kind: 'ca_remove', file: 'certs/other.crt' },
    ]);
    expect(await bed.runtime('show ssl ca-file')).not.toContain('other.crt');
  });

  test('crl_add, crl_set, crl_remove: a client is refused once its certificate is revoked', async () => {
    const client = await root.issue({ names: ['client'] });
    const [empty, revoked] = [root.revocations([]), root.revocations([client])];
    const options = ['ca-file', 'certs/ca.crt', 'crl-file', 'certs/r.crl', 'verify', 'optional'];
    const entry = { ...line('certs/a.pem', 'b.example'), options };
    await runs({ 'certs/r.crl': empty }, [
      put('crl_add', 'certs/r.crl', empty),
      { kind: 'crtlist_add', list: LIST, entry },
    ]);
    expect(await accepts(client, 'b.example')).toBe(true);
    await runs({ 'certs/r.crl': revoked }, [put('crl_set', 'certs/r.crl', revoked)]);
    expect(await accepts(client, 'b.example')).toBe(false);
    await runs({}, [
      { kind: 'crtlist_delete', list: LIST, entry },
      { kind: 'crl_remove', file: 'certs/r.crl' },
    ]);
    expect(await bed.runtime('show ssl crl-file')).not.toContain('r.crl');
  });

  test('a new certificate that HAProxy refuses leaves no empty one behind', async () => {
    const broken = pemOf({ ...pairs[1]!, key: pairs[2]!.key });
    const outcome = await send({ 'certs/n.pem': broken }, [put('cert_add', 'certs/n.pem', broken)]);
    expect(outcome.failedOperations).toMatchObject([{ kind: 'cert_add', target: 'certs/n.pem' }]);
    expect(await bed.runtime('show ssl cert')).not.toContain('n.pem');
  });

  test('a file that the worker has not loaded is put there alone', async () => {
    const pem = pemOf(pairs[2]!);
    await runs({ 'certs/z.pem': pem }, [
      put('cert_set', 'certs/z.pem', pem),
      { kind: 'cert_remove', file: 'certs/none.pem' },
    ]);
    expect(await bed.runtime('show ssl cert')).not.toContain('z.pem');
  });

  test('what the configuration names stays, however it is removed', async () => {
    await runs({}, [{ kind: 'cert_remove', file: 'certs/a.pem' }]);
    expect(await served('a.example')).toBe(mark(pairs[1]!));
  });

  test('a certificate that HAProxy refuses leaves no transaction behind, and no key in an answer', async () => {
    const broken = pemOf({ ...pairs[1]!, key: pairs[2]!.key });
    const outcome = await send({ 'certs/a.pem': broken }, [put('cert_set', 'certs/a.pem', broken)]);
    expect(outcome.failedOperations).toMatchObject([{ kind: 'cert_set', target: 'certs/a.pem' }]);
    expect(JSON.stringify(outcome)).not.toContain('PRIVATE KEY');
    expect(bed.agent.lines.join('\n')).not.toContain('PRIVATE KEY');
    expect(outcome.outcome).toBe('rejected'); // a reload refuses it as well
    expect(await served('a.example')).toBe(mark(pairs[1]!));
    const pem = pemOf(pairs[3]!);
    await bed.apply({ files: { ...files, 'certs/a.pem': pem } });
    expect(await served('a.example')).toBe(mark(pairs[3]!));
  });

  test('a file that no command carries comes with a reload', async () => {
    const long = pemOf(pairs[2]!) + `${root.certificate}\n`.repeat(30);
    const outcome = await send({ 'certs/a.pem': long }, [put('cert_set', 'certs/a.pem', long)]);
    expect(outcome).toMatchObject({ outcome: 'reload', operationsRun: 0 });
    expect(await served('a.example')).toBe(mark(pairs[2]!));
  });

  test.each([
    { kind: 'cert_set', file: '../a.pem', digest: sha256('') },
    { kind: 'cert_set', file: 'certs/a b.pem', digest: sha256('') },
    { kind: 'cert_remove', file: 'certs/a;quit' },
    { kind: 'crtlist_add', list: '/etc/x', entry: line('certs/a.pem') },
    { kind: 'crtlist_add', list: LIST, entry: line('certs/a.pem', 'a]b') },
    { kind: 'crtlist_add', list: LIST, entry: line('certs/a.pem', 'a b') },
    { kind: 'crtlist_add', list: LIST, entry: { ...line('a'), options: ['x\ny'] } },
    { kind: 'backend_publish', backend: 'a;b' },
    { kind: 'backend_add', backend: 'a', profile: 'b c', mode: 'http', structure: sha256('') },
  ] satisfies Operation[])('%o is refused and never sent', async (operation) => {
    const outcome = await bed.apply({
      ...{ files, mode: 'auto', reload: false, send: [], operations: [operation] },
      reloadNotBeforeMs: 60_000,
    });
    expect(outcome).toMatchObject({ outcome: 'scheduled', operationsRun: 0 });
    expect(outcome.failedOperations[0]?.message).toMatch(/^bad /);
  });
});
