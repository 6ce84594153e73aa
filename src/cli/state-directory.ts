import { createHash } from 'node:crypto';
import { mkdir, realpath, rm } from 'node:fs/promises';
import { createConnection, createServer, type Server } from 'node:net';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { CommandError } from './command.ts';

/** Longest path of a unix socket on Linux, in bytes. */
const SOCKET_PATH_BYTES = 107;

/** Folders of one standalone instance. */
export interface StateDirectory {
  readonly root: string;
  /** Base directory HAProxy and agent share. */
  readonly base: string;
  readonly tokenFile: string;
  readonly mirror: string;
  readonly certificateFile: string;
  /** What was in quarantine. */
  readonly quarantineFile: string;
}

/** Default: one folder per manifest directory below the user's state folder. */
export const defaultStateDirectory = (
  manifests: string,
  environment: Readonly<Record<string, string | undefined>>,
): string => {
  const states = environment['XDG_STATE_HOME'] ?? join(homedir(), '.local', 'state');
  const name = createHash('sha256').update(resolve(manifests)).digest('hex').slice(0, 12);
  return join(states, 'haptic', name);
};

/** Creates the folders, readable for this user alone. Throws CommandError with the reason. */
export const openStateDirectory = async (root: string): Promise<StateDirectory> => {
  const base = join(root, 'haproxy');
  const longest = join(base, 'haproxy-master.sock');
  if (Buffer.byteLength(longest) > SOCKET_PATH_BYTES - 8) {
    throw new CommandError(
      `the state directory ${root} is too long for unix sockets; choose a shorter one with --state-dir`,
    );
  }
  try {
    await mkdir(base, { recursive: true, mode: 0o700 });
    await mkdir(join(root, 'check'), { recursive: true, mode: 0o700 });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CommandError(
      `cannot create the state directory: ${why}; choose another one with --state-dir`,
      undefined,
      { cause: error },
    );
  }
  return {
    root,
    base,
    tokenFile: join(root, 'token'),
    mirror: join(root, 'check'),
    certificateFile: join(root, 'default.pem'),
    quarantineFile: join(root, 'quarantine.json'),
  };
};

/**
 * Takes the directory for this process: as long as the returned function was not called, nobody else gets it. The lock is a
 * listening socket, so it ends with its process, however that ends; on Linux its name is in the abstract namespace, where
 * taking it is one step that two processes cannot do at once.
 */
export const lockStateDirectory = async (root: string): Promise<() => Promise<void>> => {
  const path = await lockName(root);
  const server = createServer((socket) => socket.end());
  await listen(server, path).catch((error: unknown) => {
    throw isTaken(error) ? taken(root) : error;
  });
  return async () => {
    await new Promise((done) => server.close(done));
  };
};

const lockName = async (root: string): Promise<string> => {
  const real = await realpath(root);
  if (process.platform === 'linux') {
    return `\0haptic-${createHash('sha256').update(real).digest('hex')}`;
  }
  const path = join(real, 'lock.sock');
  if (await answers(path)) throw taken(root);
  await rm(path, { force: true });
  return path;
};

const taken = (root: string): CommandError =>
  new CommandError(
    `another HAPTIC uses the state directory ${root}; stop it, or choose another one with --state-dir`,
  );

const isTaken = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';

const answers = (path: string): Promise<boolean> =>
  new Promise((done) => {
    const socket = createConnection(path);
    socket.on('connect', () => {
      socket.destroy();
      done(true);
    });
    socket.on('error', () => {
      done(false);
    });
  });

const listen = (server: Server, path: string): Promise<void> =>
  new Promise((done, fail) => {
    server.once('error', fail);
    server.listen(path, done);
    server.unref();
  });
