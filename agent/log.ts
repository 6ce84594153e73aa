/** One JSON line for each thing that happens. Never pass file content, plans, operations' values or tokens. */
export interface Log {
  info(message: string, fields?: Readonly<Record<string, LogValue>>): void;
  warn(message: string, fields?: Readonly<Record<string, LogValue>>): void;
  error(message: string, fields?: Readonly<Record<string, LogValue>>): void;
}

export type LogValue = string | number | boolean | null | readonly string[];

/** A logger that hands finished lines, with their newline, to `write`. */
export function createLog(write: (line: string) => void): Log {
  const at =
    (level: string) =>
    (message: string, fields: Readonly<Record<string, LogValue>> = {}): void => {
      const time = new Date().toISOString();
      write(`${JSON.stringify({ level, time, name: 'haptic-agent', msg: message, ...fields })}\n`);
    };
  return { info: at('info'), warn: at('warn'), error: at('error') };
}
