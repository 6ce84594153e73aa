/** Reading the arguments of functions: with brands where they matter, and errors that name the argument. */
import { aclPattern, token, type Emitter } from './emitters.ts';
import { TemplateFailure, nearest } from './failure.ts';
import { Text, stringOf } from './text.ts';
import { deepPlain, isRecord, kindOf } from './values.ts';

type Members = Readonly<Record<string, unknown>>;

/** Fails with what is wrong with one argument. */
export const refuseArgument = (name: string, message: string): never => {
  throw new TemplateFailure(`${name} ${message}`, {
    nextStep: 'See the function in docs/templates.md.',
    reason: 'ValueRefused',
  });
};

/** The one argument that is a mapping; unknown members are refused. */
export const membersOf = (value: unknown, name: string, known: readonly string[]): Members => {
  if (!isRecord(value)) return refuseArgument(name, `takes a mapping, not ${kindOf(value)}`);
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  return unknown === undefined
    ? value
    : refuseArgument(name, `has no member "${unknown}"${nearest(unknown, known)}`);
};

export const stringArgument = (value: unknown, name: string): string =>
  stringOf(value) ?? refuseArgument(name, `is ${kindOf(value)}, not a string`);

export const optionalString = (value: unknown, name: string): string | undefined =>
  value === undefined || value === null ? undefined : stringArgument(value, name);

export const booleanArgument = (value: unknown, name: string, fallback: boolean): boolean => {
  if (value === undefined || value === null) return fallback;
  return typeof value === 'boolean'
    ? value
    : refuseArgument(name, `is ${kindOf(value)}, not a boolean`);
};

/** A string that an emitter lets through unchanged: a name, a word. */
export const wordArgument = (value: unknown, name: string, emitter: Emitter = token): string => {
  const emitted = emitter(stringArgument(value, name));
  return emitted.ok ? emitted.text : refuseArgument(name, `is refused: ${emitted.reason}`);
};

/** Branded text of whole lines; what is not branded is refused. */
export const linesArgument = (value: unknown, name: string): Text => {
  if (value === undefined || value === null) return new Text('');
  if (!(value instanceof Text)) {
    return refuseArgument(
      name,
      'has to be captured with {% set %}, so that emitters guard what it prints',
    );
  }
  return value.value === '' || value.value.endsWith('\n')
    ? value
    : new Text(`${value.value}\n`, value.marks);
};

/** A list of plain values. */
export const listArgument = (value: unknown, name: string): readonly unknown[] => {
  if (value === undefined || value === null) return [];
  const bare = deepPlain(value);
  return Array.isArray(bare)
    ? (bare as unknown[])
    : refuseArgument(name, `is ${kindOf(value)}, not a list`);
};

/** Kept with the emitters it pairs with: a host pattern of a certificate list. */
export const hostPattern: Emitter = (value) => {
  const bare = value.startsWith('!') ? value.slice(1) : value;
  return /^[A-Za-z0-9*_.-]+$/.test(bare)
    ? aclPattern(value).ok
      ? { ok: true, text: value }
      : { ok: false, reason: 'it starts with a dash' }
    : { ok: false, reason: 'it is no host name' };
};
