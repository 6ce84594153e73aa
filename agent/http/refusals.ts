import type { TLSSocket } from 'node:tls';
import type { GuardReports } from './guard.ts';
import type { RefusalReason } from './refusal-reasons.ts';

/** One refusal: its class and what to tell people. */
export interface Refusal {
  readonly reason: RefusalReason;
  readonly message: string;
}

/** Least distance of two lines about the same reason, in milliseconds: who knocks all day fills no disk. */
const DISTANCE_MS = 60_000;

/** Counts every refusal, and logs the first of a reason and then at most one a minute. */
export class RefusalLog {
  readonly #reports: GuardReports;
  readonly #told = new Map<RefusalReason, { atMs: number; silent: number }>();

  constructor(reports: GuardReports) {
    this.#reports = reports;
  }

  tell({ reason, message }: Refusal, remote: string | undefined): void {
    const { log, metrics } = this.#reports;
    metrics.count('haptic_agent_refused_connections_total', reason);
    const now = performance.now();
    const last = this.#told.get(reason);
    if (last !== undefined && now - last.atMs < DISTANCE_MS) {
      last.silent += 1;
      return;
    }
    this.#told.set(reason, { atMs: now, silent: 0 });
    log.warn('refused', { reason, message, remote: remote ?? null, untold: last?.silent ?? 0 });
  }
}

const BY_CODE: Readonly<Record<string, Refusal>> = {
  ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE: {
    reason: 'no-certificate',
    message: 'the client showed no certificate',
  },
  ERR_SSL_UNSUPPORTED_PROTOCOL: {
    reason: 'tls-version',
    message: 'the client does not speak TLS 1.3',
  },
  ERR_SSL_HTTP_REQUEST: { reason: 'not-tls', message: 'the client speaks HTTP without TLS' },
  ERR_SSL_WRONG_VERSION_NUMBER: { reason: 'not-tls', message: 'the client does not speak TLS' },
};

/** What a handshake that failed on this side means. */
export function handshakeRefusal(error: Error, socket: TLSSocket): Refusal {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  // The types say Error, but what is there is the code of OpenSSL, or nothing.
  const verdict: unknown = socket.authorizationError;
  if (typeof verdict === 'string') {
    return {
      reason: verdict === 'CERT_HAS_EXPIRED' ? 'expired' : 'certificate',
      message: `the client's certificate does not hold: ${verdict}; check its start and end, the clocks, and that ca.crt holds its authority`,
    };
  }
  if (code.includes('_ALERT_')) {
    return {
      reason: 'refused-by-client',
      message: `the client refuses the certificate of this agent: ${code}`,
    };
  }
  const known = Object.hasOwn(BY_CODE, code) ? BY_CODE[code] : undefined;
  return known ?? { reason: 'handshake', message: `the handshake was not finished: ${code}` };
}
