import { BadRequest } from '../failures.ts';

/** A JSON object whose members nobody has looked at yet. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Reads members of untrusted JSON; every mismatch is a {@link BadRequest} that names the member. */
export const shape = {
  object(value: unknown, name: string): JsonObject {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) wrong(name, 'object');
    return value as JsonObject;
  },
  list(value: unknown, name: string, max: number): readonly unknown[] {
    if (!Array.isArray(value)) return wrong(name, 'list');
    if (value.length > max) throw new BadRequest(`${name} has more than ${max} members`);
    return value;
  },
  text(value: unknown, name: string): string {
    return typeof value === 'string' ? value : wrong(name, 'string');
  },
  flag(value: unknown, name: string): boolean {
    return typeof value === 'boolean' ? value : wrong(name, 'boolean');
  },
  /** A whole number from 0 on. */
  count(value: unknown, name: string): number {
    return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
      ? value
      : wrong(name, 'whole number');
  },
  digest(value: unknown, name: string): string {
    return typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)
      ? value
      : wrong(name, 'SHA-256 in lower-case hex');
  },
  oneOf<T extends string>(value: unknown, name: string, words: readonly T[]): T {
    return words.find((word) => word === value) ?? wrong(name, `one of ${words.join(', ')}`);
  },
  optional<T>(value: unknown, read: (value: unknown) => T): T | undefined {
    return value === undefined ? undefined : read(value);
  },
} as const;

function wrong(name: string, expected: string): never {
  throw new BadRequest(`${name} is not a ${expected}`);
}
