import { access, mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Where the first HAProxy listens before anything was applied. */
export interface BootstrapOptions {
  readonly base: string;
  readonly httpPort: number;
}

/**
 * The configuration HAProxy is started with when nothing was ever applied: it answers 503, so that nobody takes an empty load
 * balancer for a working one, and opens the sockets the agent needs.
 */
export const bootstrapConfiguration = ({ base, httpPort }: BootstrapOptions): string =>
  [
    'global',
    `    default-path origin ${base}`,
    `    stats socket ${join(base, 'haproxy-worker.sock')} mode 600 level admin expose-fd listeners`,
    '    maxconn 1000',
    '',
    'defaults',
    '    mode http',
    '    timeout connect 5s',
    '    timeout client 30s',
    '    timeout server 30s',
    '',
    'frontend bootstrap',
    `    bind :${String(httpPort)}`,
    '    http-request return status 503 content-type text/plain string "starting"',
    '',
  ].join('\n');

/** Writes the bootstrap configuration unless the directory holds one, or `force` says to replace it. */
export const writeBootstrap = async (
  options: BootstrapOptions,
  force: boolean,
): Promise<boolean> => {
  const target = join(options.base, 'haproxy.cfg');
  await mkdir(options.base, { recursive: true, mode: 0o700 });
  if (!force && (await exists(target))) return false;
  const staged = join(options.base, '.haproxy.cfg.bootstrap');
  await writeFile(staged, bootstrapConfiguration(options), { mode: 0o600 });
  await rename(staged, target);
  return true;
};

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
