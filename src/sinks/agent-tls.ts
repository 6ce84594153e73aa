import { X509Certificate } from 'node:crypto';
import { Agent, buildConnector, type Dispatcher } from 'undici';
import { isDnsName, isNamed, readCredentials, type Credentials } from '../mtls/credentials.ts';
import { watchCredentials } from '../mtls/credentials-watch.ts';
import { WrongNameError } from './agent-tls-failure.ts';

/** How the controller proves itself to its agents, and recognises them. */
export interface AgentTlsOptions {
  /** Directory with `tls.crt`, `tls.key` and `ca.crt`; followed when they are replaced. */
  readonly dir: string;
  /** DNS name that every agent's certificate carries, whatever the address of its pod. */
  readonly serverName: string;
  /** Told once for each thing that is wrong with replaced credentials; the ones before stay in force. */
  readonly onProblem: (message: string) => void;
  /** Milliseconds between two looks at the files when the file system tells of no change. Default: 10 s. */
  readonly everyMs?: number;
}

/** Connections to agents over mutual TLS. */
export interface AgentTls {
  /** For the next request; never kept. */
  readonly dispatcher: () => Dispatcher;
  /** End of the controller's certificate in milliseconds since 1970. */
  readonly notAfterMs: () => number;
  readonly close: () => Promise<void>;
}

/** Connections to one agent: one for the apply in flight, one to look at the state meanwhile. */
export const AGENT_POOL = { connections: 2, pipelining: 1 } as const;

/**
 * TLS 1.3 to agents, certificates on both sides. Replaced credentials are in force for the next request; requests on older
 * connections end first, then these are closed.
 *
 * @throws when the credentials cannot be used or the name is none
 */
export async function createAgentTls(options: AgentTlsOptions): Promise<AgentTls> {
  const { dir, serverName, onProblem, everyMs } = options;
  if (!isDnsName(serverName)) throw new Error(`the agents' name "${serverName}" is no DNS name`);
  const initial = await readCredentials(dir).catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`the credentials in ${dir} cannot be used: ${reason}`, { cause: error });
  });
  const open = (credentials: Credentials): Agent =>
    new Agent({ ...AGENT_POOL, connect: connector(credentials, serverName) });
  let current = { credentials: initial, agent: open(initial) };
  const retiring = new Set<Agent>();
  const retire = (agent: Agent): void => {
    retiring.add(agent);
    void agent.close().finally(() => retiring.delete(agent));
  };
  const stop = watchCredentials({
    dir,
    initial,
    onProblem,
    ...(everyMs === undefined ? {} : { everyMs }),
    onChange: (credentials) => {
      const { agent } = current;
      current = { credentials, agent: open(credentials) };
      retire(agent);
    },
  });
  return {
    dispatcher: () => current.agent,
    notAfterMs: () => current.credentials.notAfterMs,
    close: async () => {
      stop();
      await Promise.all([current.agent, ...retiring].map((agent) => agent.destroy()));
    },
  };
}

function connector(
  { cert, key, ca }: Credentials,
  serverName: string,
): ReturnType<typeof buildConnector> {
  const connect = buildConnector({
    cert,
    key,
    ca,
    minVersion: 'TLSv1.3',
    rejectUnauthorized: true,
    allowH2: false,
    maxCachedSessions: 0, // each connection is verified against the authorities of now
    checkServerIdentity: (_host, { raw }) => {
      const certificate = new X509Certificate(raw);
      if (isNamed(certificate, serverName)) return undefined;
      const names = certificate.subjectAltName?.slice(0, 200) ?? 'no name';
      return new WrongNameError(`it is not for ${serverName} but for ${names}`);
    },
  });
  return (options, callback) => {
    if (options.protocol !== 'https:') {
      callback(new Error('agents are reached by https only when certificates are used'), null);
      return;
    }
    // Pods are addressed by IP, which no certificate carries.
    connect({ ...options, servername: serverName }, callback);
  };
}
