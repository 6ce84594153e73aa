import { expect, test } from 'vitest';
import { WrongNameError, explainTlsFailure } from '../../../src/sinks/agent-tls-failure.ts';

const NOW = Date.UTC(2026, 0, 2);
const VALID = { lastedMs: 20, notAfterMs: NOW + 1_000, nowMs: NOW };
const errorOf = (code: string, more: object = {}): Error =>
  Object.assign(new Error('words of the library'), { code, ...more });
const mute = errorOf('UND_ERR_SOCKET', { socket: { bytesRead: 0 } });

test.each([
  [errorOf('CERT_HAS_EXPIRED'), /controller refuses.*CERT_HAS_EXPIRED; check the end/],
  [errorOf('SELF_SIGNED_CERT_IN_CHAIN'), /controller refuses.*ca\.crt holds the agent's authority/],
  [
    new WrongNameError('it is not for a but for b'),
    /refuses.*not for a but for b; check the names/,
  ],
  [
    errorOf('ERR_SSL_WRONG_VERSION_NUMBER'),
    /does not speak TLS; check that it runs with --tls-dir/,
  ],
  [errorOf('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION'), /does not speak TLS 1\.3/],
  [errorOf('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'), /agent ended.*the agent's ca\.crt/],
  [mute, /agent ended the connection \(UND_ERR_SOCKET\).*or it has stopped/],
  [errorOf('ECONNRESET'), /agent ended the connection/],
])('a failed handshake says who refused whom and what to check: %s', (error, message) => {
  expect(explainTlsFailure(error, VALID)).toMatch(message);
});

test('a refusal of an expired certificate names its end', () => {
  const message = explainTlsFailure(mute, { ...VALID, notAfterMs: NOW - 1 });
  expect(message).toMatch(/which expired at 2026-01-01T23:59:59\.999Z; renew it/);
});

test.each([
  ['a connection that had been used', errorOf('UND_ERR_SOCKET', { socket: { bytesRead: 9 } }), 20],
  ['one that lasted', mute, 3_000],
  ['nobody there', errorOf('ECONNREFUSED'), 20],
  ['no error at all', 'words', 20],
])('says nothing about certificates for %s', (_what, error, lastedMs) => {
  expect(explainTlsFailure(error, { ...VALID, lastedMs })).toBeUndefined();
});
