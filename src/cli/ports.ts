import { createServer } from 'node:net';
import { CommandError } from './command.ts';

/** A TCP port number from a flag; 1 to 65535, or 0 for a free one where that is allowed. */
export const portOf = (value: unknown, flag: string): number => {
  const port = typeof value === 'string' && /^\d{1,5}$/.test(value) ? Number(value) : NaN;
  if (!(port >= 0 && port <= 65_535)) {
    throw new CommandError(`--${flag} takes a port number from 0 to 65535`);
  }
  return port;
};

/** The port itself when it is free on `host`, a free one for 0. Throws CommandError naming the flag. */
export const claimPort = (port: number, flag: string, host: string): Promise<number> =>
  new Promise((done, fail) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why = error.code === 'EADDRINUSE' ? 'is taken' : `cannot be used (${error.message})`;
      fail(new CommandError(`port ${String(port)} ${why}; choose another one with --${flag}`));
    });
    server.listen({ port, host, exclusive: true }, () => {
      const address = server.address();
      const claimed = address !== null && typeof address === 'object' ? address.port : port;
      server.close(() => {
        done(claimed);
      });
    });
  });
