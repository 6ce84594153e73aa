import { parseArgs, type ParseArgsOptionDescriptor } from 'node:util';
import { nearestName } from '../render/nearest-name.ts';

/** Exit statuses of every command. */
export const EXIT = { good: 0, badInput: 1, couldNotRun: 2 } as const;

/** Where a command prints, and what it may read from outside. */
export interface Terminal {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** Whether `out` is a terminal. */
  readonly isTerminal: boolean;
  /** Whether `err` is a terminal. Default false. */
  readonly errIsTerminal?: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Aborts when the user wants the command to end. */
  readonly signal: AbortSignal;
}

export interface Option extends ParseArgsOptionDescriptor {
  /** One line for `--help`. */
  readonly help: string;
  /** Name of the value in `--help`, for options of type string. */
  readonly value?: string;
}

export type Values = Readonly<Record<string, string | boolean | undefined>>;

export interface Command {
  readonly name: string;
  /** For example `DIR`; as many positional arguments as words. */
  readonly arguments: readonly string[];
  readonly summary: string;
  /** Further paragraphs of `--help`. */
  readonly details?: string;
  readonly options: Readonly<Record<string, Option>>;
  /** Returns the exit status. May throw {@link UsageError} or {@link CommandError}. */
  readonly run: (call: Call) => Promise<number>;
}

export interface Call {
  readonly positionals: readonly string[];
  readonly values: Values;
  readonly terminal: Terminal;
}

/** The call's words are off: exit status 2 and a hint at `--help`. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The command could not do its work; the message says what is wrong and what to do. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly status: number;
  constructor(message: string, status: number = EXIT.couldNotRun, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

const COMMON: Readonly<Record<string, Option>> = {
  help: { type: 'boolean', short: 'h', help: 'show this help' },
  output: { type: 'string', value: 'text|json', default: 'text', help: 'form of the result' },
};

/** What there is to run. */
export interface Program {
  readonly commands: readonly Command[];
  /** Told by `--version`. */
  readonly version: string;
}

/**
 * Finds, parses and runs one of the program's commands; every failure becomes a message and an exit status. `--help`
 * wins wherever it stands.
 */
export const runCommand = async (
  { commands, version }: Program,
  argv: readonly string[],
  terminal: Terminal,
): Promise<number> => {
  const [name, ...words] = argv;
  if (asksForHelp(argv)) return help(commands, argv, terminal);
  if (name === '--version') {
    terminal.out(`haptic ${version}\n`);
    return EXIT.good;
  }
  const command = commands.find((candidate) => candidate.name === name);
  if (command === undefined) return unknownCommand(commands, name, terminal);
  try {
    return await command.run({ ...parse(command, words), terminal });
  } catch (error) {
    return explain(command, error, terminal);
  }
};

const asksForHelp = (argv: readonly string[]): boolean => {
  const end = argv.indexOf('--');
  const flags = end === -1 ? argv : argv.slice(0, end);
  return argv[0] === 'help' || flags.includes('--help') || flags.includes('-h');
};

const help = (commands: readonly Command[], argv: readonly string[], { out }: Terminal): number => {
  const first = argv.find((word) => !word.startsWith('-') && word !== 'help');
  const command = commands.find(({ name }) => name === first);
  out(command === undefined ? overview(commands) : usage(command));
  return EXIT.good;
};

const unknownCommand = (
  commands: readonly Command[],
  name: string | undefined,
  { out, err }: Terminal,
): number => {
  if (name === undefined) out(overview(commands));
  else if (name.startsWith('-')) err(`haptic: there is no option ${name}; see haptic --help\n`);
  else {
    const names = commands.map((command) => command.name);
    err(`haptic: there is no command '${name}'${nearest(name, names)}; see haptic --help\n`);
  }
  return EXIT.couldNotRun;
};

const nearest = (name: string, known: readonly string[], prefix = ''): string => {
  const found = nearestName(name, known);
  return found === undefined ? '' : `; nearest: ${prefix}${found}`;
};

const parse = (command: Command, words: readonly string[]): Omit<Call, 'terminal'> => {
  const options = { ...COMMON, ...command.options };
  const { values, positionals, tokens } = parseArgs({
    args: [...words],
    options,
    allowPositionals: true,
    // Node's own complaints go on about quoting; ours name the nearest option.
    strict: false,
    tokens: true,
  });
  for (const token of tokens) if (token.kind === 'option') checkOption(token, options);
  if (positionals.length !== command.arguments.length) {
    throw new UsageError(`expected ${command.arguments.join(' ') || 'no arguments'}`);
  }
  const output = values['output'];
  if (output !== 'text' && output !== 'json') throw new UsageError('--output takes text or json');
  return { values: values, positionals };
};

interface OptionToken {
  readonly name: string;
  readonly rawName: string;
  readonly value?: string | undefined;
  readonly inlineValue?: boolean | undefined;
}

const checkOption = (
  { name, rawName, value, inlineValue }: OptionToken,
  options: Readonly<Record<string, Option>>,
): void => {
  const option = Object.hasOwn(options, name) ? options[name] : undefined;
  if (option === undefined) {
    throw new UsageError(
      `there is no option ${rawName}${nearest(name, Object.keys(options), '--')}`,
    );
  }
  if (option.type === 'boolean') {
    if (value !== undefined) throw new UsageError(`${rawName} takes no value`);
    return;
  }
  // `--out --demo` most likely lacks a value; `--out=--demo` says what it means.
  const isAnother = inlineValue === false && value?.startsWith('-') === true;
  if (value === undefined || isAnother) {
    throw new UsageError(`${rawName} needs a value: ${rawName} ${option.value ?? 'VALUE'}`);
  }
};

const explain = (command: Command, error: unknown, { err }: Terminal): number => {
  if (error instanceof UsageError) {
    err(`haptic ${command.name}: ${error.message}; see haptic ${command.name} --help\n`);
    return EXIT.couldNotRun;
  }
  if (error instanceof CommandError) {
    err(`haptic ${command.name}: ${error.message}\n`);
    return error.status;
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  err(`haptic ${command.name}: unexpected: ${text}\n`);
  return EXIT.couldNotRun;
};

const overview = (commands: readonly Command[]): string => {
  const width = Math.max(...commands.map(({ name }) => name.length));
  const rows = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
  return [
    'HAPTIC: Kubernetes resources in, a fleet of HAProxy load balancers out.',
    '',
    'usage: haptic COMMAND …',
    '',
    ...rows,
    '',
    'Every command has --help and --output text|json; exit status 0 good, 1 bad input, 2 could not run.',
    'haptic --version tells the version.',
    '',
  ].join('\n');
};

const usage = (command: Command): string => {
  const options = Object.entries({ ...command.options, ...COMMON }).map(([name, option]) => {
    const flag = option.type === 'string' ? `--${name} ${option.value ?? 'VALUE'}` : `--${name}`;
    const preset = typeof option.default === 'string' ? ` (default ${option.default})` : '';
    return [flag, `${option.help}${preset}`] as const;
  });
  const width = Math.max(...options.map(([flag]) => flag.length));
  return [
    `usage: haptic ${[command.name, ...command.arguments, '[options]'].join(' ')}`,
    '',
    `${command.summary}.`,
    ...(command.details === undefined ? [] : ['', command.details]),
    '',
    ...options.map(([flag, help]) => `  ${flag.padEnd(width)}  ${help}`),
    '',
  ].join('\n');
};
