/** The agent's certificate is not for the name that all agents carry. */
export class WrongNameError extends Error {
  readonly code = 'HAPTIC_WRONG_NAME';
}

/** When a request failed, and with which certificate. */
export interface FailedRequest {
  /** Milliseconds from its start to its failure. */
  readonly lastedMs: number;
  /** End of the controller's certificate, in milliseconds since 1970. */
  readonly notAfterMs: number;
  /** Now, in milliseconds since 1970. */
  readonly nowMs: number;
}

const AUTHORITY = "that the controller's ca.crt holds the agent's authority";

/** What to check, by OpenSSL's and our own words for what is wrong with the agent's certificate. */
const AGENT_REFUSED: Readonly<Record<string, string>> = {
  HAPTIC_WRONG_NAME: "the names in the agent's certificate",
  CERT_HAS_EXPIRED: "the end of the agent's certificate, and the clocks",
  CERT_NOT_YET_VALID: "the start of the agent's certificate, and the clocks",
  INVALID_PURPOSE: "that the agent's certificate allows server authentication",
  CERT_SIGNATURE_FAILURE: AUTHORITY,
  DEPTH_ZERO_SELF_SIGNED_CERT: AUTHORITY,
  SELF_SIGNED_CERT_IN_CHAIN: AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: AUTHORITY,
};

const NO_COMMON_PROTOCOL: Readonly<Record<string, string>> = {
  ERR_SSL_WRONG_VERSION_NUMBER: 'the agent does not speak TLS; check that it runs with --tls-dir',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'the agent does not speak TLS; check that it runs with --tls-dir',
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: 'the agent does not speak TLS 1.3; check its version',
};

/** A new connection that ends without a word in this time was refused, in milliseconds. */
const REFUSED_WITHIN_MS = 2_000;

/**
 * What a failed request over mutual TLS says about who refused whom, and what to check. An agent that refuses a certificate
 * ends the connection without a word (for this side the handshake of TLS 1.3 is over by then), which looks like an agent that
 * stops; the message names both.
 *
 * @returns `undefined` when it says nothing about certificates
 */
export function explainTlsFailure(error: unknown, failed: FailedRequest): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  if (Object.hasOwn(AGENT_REFUSED, code)) {
    const reason = error instanceof WrongNameError ? error.message : code; // Node's words give advice that is wrong here
    return `the controller refuses the agent's certificate: ${reason}; check ${AGENT_REFUSED[code] ?? ''}`;
  }
  if (Object.hasOwn(NO_COMMON_PROTOCOL, code)) return NO_COMMON_PROTOCOL[code];
  const refused = code.includes('_ALERT_') || endedMute(error, code, failed);
  return refused ? agentRefuses(code, failed) : undefined;
}

function agentRefuses(code: string, { notAfterMs, nowMs }: FailedRequest): string {
  if (notAfterMs < nowMs) {
    const end = new Date(notAfterMs).toISOString();
    return `the agent refuses the controller's certificate, which expired at ${end}; renew it`;
  }
  return (
    `the agent ended the connection (${code}): it refuses the controller's certificate, or it has stopped; ` +
    "check its log, and that the agent's ca.crt holds the authority of the controller's certificate"
  );
}

/** The other side closed a connection on which it had never said anything. */
function endedMute(error: Error, code: string, { lastedMs }: FailedRequest): boolean {
  if (lastedMs > REFUSED_WITHIN_MS) return false;
  if (code === 'ECONNRESET' || code === 'EPIPE') return true;
  const socket: unknown = 'socket' in error ? error.socket : undefined;
  return (
    typeof socket === 'object' && socket !== null && 'bytesRead' in socket && socket.bytesRead === 0
  );
}
