import type { RequestOptions } from 'node:https';
import { KubeConfig } from '@kubernetes/client-node';
import type { KubeAccess, KubeCredentials, KubeTls } from './kube-access.ts';

/** Which cluster and user to take of which kubeconfig. */
export interface KubeConfigOptions {
  /** Path of one file. Default: the files that KUBECONFIG lists, else `~/.kube/config`. */
  readonly file?: string;
  /** Default: the current context. */
  readonly context?: string;
}

/**
 * Access as a kubeconfig describes it, with its client certificates, tokens, exec plugins and auth providers. Import this
 * file only when it is needed: it brings all of `@kubernetes/client-node` into memory, which a pod can do without
 * ({@link inClusterAccess} of `kube-access.ts`).
 *
 * Throws an Error that says what is missing.
 */
export const kubeConfigAccess = ({ file, context }: KubeConfigOptions): KubeAccess => {
  const config = new KubeConfig();
  if (file === undefined) config.loadFromDefault();
  else config.loadFromFile(file);
  if (context !== undefined) config.setCurrentContext(context);
  const name = config.getCurrentContext();
  const cluster = config.getCurrentCluster();
  if (cluster === null) {
    throw new Error(
      `The kubeconfig has no context ${JSON.stringify(name)} with a cluster. Next: choose one with --context.`,
    );
  }
  if (cluster.proxyUrl !== undefined) {
    throw new Error(
      `Context ${JSON.stringify(name)} reaches its cluster through proxy-url, which is not supported. ` +
        'Next: use a context that reaches it directly.',
    );
  }
  return {
    server: cluster.server,
    namespace: config.getContextObject(name)?.namespace,
    credentials: async () => {
      const options: RequestOptions = {};
      await config.applyToHTTPSOptions(options);
      return { headers: headersOf(options), tls: tlsOf(options) };
    },
  };
};

const headersOf = ({ headers, auth }: RequestOptions): KubeCredentials['headers'] => ({
  ...Object.fromEntries(
    Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), String(value)]),
  ),
  ...(typeof auth === 'string'
    ? { authorization: `Basic ${Buffer.from(auth).toString('base64')}` }
    : {}),
});

const tlsOf = ({ ca, cert, key, rejectUnauthorized, servername }: RequestOptions): KubeTls => ({
  ...pem('ca', ca),
  ...pem('cert', cert),
  ...pem('key', key),
  ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }),
  ...(servername === undefined ? {} : { servername }),
});

const pem = (name: 'ca' | 'cert' | 'key', value: unknown): KubeTls =>
  typeof value === 'string' || Buffer.isBuffer(value) ? { [name]: value } : {};
