import { readFile, stat } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';

/** Where the API server is and how to be let in. */
export interface KubeAccess {
  /** Base URL; a path in it is put before the path of every request. */
  readonly server: string;
  /** Namespace that requests without one mean, if the context or the pod names it. */
  readonly namespace: string | undefined;
  /** The credentials as they are now; asked for before every request. Rejects when they cannot be read or obtained. */
  credentials(): Promise<KubeCredentials>;
}

/** What goes with a request and with a connection. */
export interface KubeCredentials {
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: KubeTls;
}

/** TLS settings of a connection; PEM. Another value of a member means another connection. */
export interface KubeTls {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  /** Default true. */
  readonly rejectUnauthorized?: boolean;
  readonly servername?: string;
}

/** The environment variables that the kubelet sets in every container. */
export interface InClusterEnvironment {
  readonly KUBERNETES_SERVICE_HOST?: string | undefined;
  readonly KUBERNETES_SERVICE_PORT?: string | undefined;
}

/** Where the kubelet projects the service account's token, certificate authority and namespace. */
export const SERVICE_ACCOUNT_DIRECTORY = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * Access as the pod's own service account. Token and certificate authority are read again whenever their files change:
 * the kubelet replaces a token long before it expires.
 *
 * Undefined when the environment is not that of a pod.
 *
 * @param directory holds `token`, `ca.crt` and `namespace`
 */
export const inClusterAccess = async (
  environment: InClusterEnvironment,
  directory: string = SERVICE_ACCOUNT_DIRECTORY,
): Promise<KubeAccess | undefined> => {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = environment;
  if (!host || !port) return undefined;
  const token = changingFile(join(directory, 'token'));
  const ca = changingFile(join(directory, 'ca.crt'));
  const namespace = await readFile(join(directory, 'namespace'), 'utf8').catch(() => undefined);
  return {
    server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    namespace: namespace?.trim(),
    credentials: async () => ({
      headers: { authorization: `Bearer ${(await token()).trim()}` },
      tls: { ca: await ca() },
    }),
  };
};

/** Reads a file, and again only when it is another one or was written since. */
const changingFile = (path: string): (() => Promise<string>) => {
  let known: { readonly stamp: string; readonly content: string } | undefined;
  return async () => {
    const { ino, mtimeMs, size } = await stat(path);
    const stamp = `${ino} ${mtimeMs} ${size}`;
    if (known?.stamp !== stamp) known = { stamp, content: await readFile(path, 'utf8') };
    return known.content;
  };
};
