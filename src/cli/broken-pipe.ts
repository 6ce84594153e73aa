import type { EventEmitter } from 'node:events';

/** Keeps a reader that leaves early, such as `head`, from ending the program: what it does not read is dropped. */
export const tolerateBrokenPipe = (stream: EventEmitter): void => {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
};
