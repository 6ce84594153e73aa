import { pino, type DestinationStream, type Logger } from 'pino';
import { PinoPretty } from 'pino-pretty';
import type { LogLine } from '../sinks/log-line.ts';

/** Levels of `--log-level`, the most talkative first. */
export const LEVELS: readonly string[] = ['debug', 'info', 'warn', 'error'];

/**
 * Members that are cut out of every line, wherever they stand: lines carry no content in the first place, this is for the
 * day somebody logs an object.
 */
const SECRET = [
  'pem',
  'key',
  'token',
  'password',
  'authorization',
  'data',
  'stringData',
  'content',
];

/**
 * A pino logger: JSON lines, or one readable line per event on a terminal.
 *
 * @param destination where to write; default standard output
 */
export const createLogger = (
  level: string,
  readable: boolean,
  destination?: DestinationStream,
): Logger => {
  const options = {
    level,
    base: null,
    redact: {
      paths: SECRET.flatMap((name) => [name, `*.${name}`, `*.*.${name}`, `*.*.*.${name}`]),
      censor: '[redacted]',
    },
  };
  if (!readable) return destination === undefined ? pino(options) : pino(options, destination);
  const pretty = PinoPretty({
    sync: true,
    translateTime: 'HH:MM:ss.l',
    // The message says it all; the fields are for machines.
    hideObject: true,
    ...(destination === undefined ? {} : { destination }),
  });
  return pino(options, pretty);
};

export const writeLine = (logger: Logger, { level, message, fields }: LogLine): void => {
  logger[level](fields, message);
};
