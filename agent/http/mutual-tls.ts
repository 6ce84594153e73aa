import { constants, type X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { createServer, type Server, type ServerOptions } from 'node:https';
import { TLSSocket } from 'node:tls';
import {
  readCredentials,
  isNamed,
  isTrusted,
  type Credentials,
} from '../../src/mtls/credentials.ts';
import { watchCredentials } from '../../src/mtls/credentials-watch.ts';
import { messageOf } from '../failures.ts';
import type { Access } from '../options.ts';
import type { Guard, GuardReports } from './guard.ts';
import { RefusalLog, handshakeRefusal, type Refusal } from './refusals.ts';

type MutualTls = Extract<Access, { readonly kind: 'mutual-tls' }>;

/** The other end of one connection. */
interface Peer {
  readonly certificate: X509Certificate | undefined;
  readonly named: boolean;
  /** Credentials of the agent when the connection came. */
  readonly since: Credentials;
  /** Credentials under which its certificate was looked at last, and found good. */
  trustedUnder: Credentials | undefined;
}

const HANDSHAKE_MS = 10_000;

/**
 * TLS 1.3 with certificates on both sides. A client without a certificate of an authority in `ca.crt` fails in the
 * handshake; one for another name is answered 401. Replaced credentials are in force for new connections at once; an older
 * connection is looked at again with its next request and ends with the answer, so that no request is lost.
 *
 * @throws when the credentials cannot be used
 */
export async function createMutualTlsGuard(
  access: MutualTls,
  reports: GuardReports,
): Promise<Guard> {
  const credentials = await readCredentials(access.dir).catch((error: unknown) => {
    throw new Error(`the credentials in ${access.dir} cannot be used: ${messageOf(error)}`);
  });
  return new MutualTlsGuard(access, credentials, reports);
}

class MutualTlsGuard implements Guard {
  readonly #clientName: string;
  readonly #reports: GuardReports;
  readonly #refusals: RefusalLog;
  readonly #peers = new WeakMap<TLSSocket, Peer>();
  readonly #stop: () => void;
  readonly #servers: Server[] = [];
  #credentials: Credentials;

  constructor({ dir, clientName }: MutualTls, initial: Credentials, reports: GuardReports) {
    this.#clientName = clientName;
    this.#reports = reports;
    this.#refusals = new RefusalLog(reports);
    this.#credentials = initial;
    this.#tellExpiry();
    this.#stop = watchCredentials({
      dir,
      initial,
      onChange: (credentials) => this.#replace(credentials),
      onProblem: (message) => reports.log.error(message),
    });
  }

  readonly createServer: Guard['createServer'] = (listener) => {
    const server = createServer(secureOptions(this.#credentials), listener);
    server.on('secureConnection', (socket) => this.#peer(socket));
    server.on('tlsClientError', (error, socket) => {
      this.#refusals.tell(handshakeRefusal(error, socket), socket.remoteAddress);
    });
    this.#servers.push(server);
    return server;
  };

  readonly refusal: Guard['refusal'] = ({ socket }) => {
    const refusal = this.#refusalOf(socket instanceof TLSSocket ? socket : undefined);
    if (refusal !== undefined) this.#refusals.tell(refusal, socket.remoteAddress);
    return refusal?.message;
  };

  readonly isOutdated = ({ socket }: IncomingMessage): boolean =>
    !(socket instanceof TLSSocket) || this.#peer(socket).since !== this.#credentials;

  readonly close = (): void => this.#stop();

  #refusalOf(socket: TLSSocket | undefined): Refusal | undefined {
    const peer = socket === undefined ? undefined : this.#peer(socket);
    if (socket?.authorized !== true || peer?.certificate === undefined) {
      return { reason: 'no-certificate', message: 'a certificate that holds is needed' };
    }
    if (!peer.named) {
      return {
        reason: 'name',
        message: `the client's certificate is not for ${this.#clientName} but for ${namesOf(peer.certificate)}`,
      };
    }
    return this.#holds(peer, peer.certificate)
      ? undefined
      : {
          reason: 'certificate',
          message:
            "the client's certificate has expired, or its authority is not in ca.crt any more",
        };
  }

  #holds(peer: Peer, certificate: X509Certificate): boolean {
    const now = Date.now();
    if (peer.trustedUnder === this.#credentials) return certificate.validToDate.getTime() >= now;
    if (!isTrusted(certificate, this.#credentials, now)) return false;
    peer.trustedUnder = this.#credentials;
    return true;
  }

  #peer(socket: TLSSocket): Peer {
    const known = this.#peers.get(socket);
    if (known !== undefined) return known;
    const certificate = socket.getPeerX509Certificate();
    const peer: Peer = {
      certificate,
      named: certificate !== undefined && isNamed(certificate, this.#clientName),
      since: this.#credentials,
      trustedUnder: undefined,
    };
    this.#peers.set(socket, peer);
    return peer;
  }

  #replace(credentials: Credentials): void {
    this.#credentials = credentials;
    for (const server of this.#servers) server.setSecureContext(secureOptions(credentials));
    this.#tellExpiry();
    this.#reports.log.info('credentials replaced', {
      notAfter: new Date(credentials.notAfterMs).toISOString(),
      authorities: credentials.authorities.length,
    });
  }

  #tellExpiry(): void {
    const { metrics } = this.#reports;
    const seconds = Math.floor(this.#credentials.notAfterMs / 1_000);
    metrics.set('haptic_agent_certificate_expiry_timestamp_seconds', seconds);
  }
}

const secureOptions = ({ cert, key, ca }: Credentials): ServerOptions => ({
  cert,
  key,
  ca,
  minVersion: 'TLSv1.3',
  requestCert: true,
  rejectUnauthorized: true,
  handshakeTimeout: HANDSHAKE_MS,
  ALPNProtocols: ['http/1.1'],
  // No connection is resumed: each is verified against the authorities of now.
  secureOptions: constants.SSL_OP_NO_TICKET,
});

const MAX_NAMES_LENGTH = 200;
const namesOf = ({ subjectAltName }: X509Certificate): string =>
  subjectAltName?.slice(0, MAX_NAMES_LENGTH) ?? 'no name';
