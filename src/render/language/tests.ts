import { isRecord } from './values.ts';
import { plain } from './text.ts';

export type Test = (value: unknown, args: readonly unknown[]) => boolean;

const integer = (value: unknown): value is number => Number.isInteger(value);

/** What can follow `is`. */
export const TESTS: ReadonlyMap<string, Test> = new Map<string, Test>([
  ['defined', (value) => value !== undefined],
  ['undefined', (value) => value === undefined],
  ['none', (value) => value === null],
  ['string', (value) => typeof plain(value) === 'string'],
  ['number', (value) => typeof value === 'number'],
  ['boolean', (value) => typeof value === 'boolean'],
  ['list', (value) => Array.isArray(value)],
  ['mapping', (value) => isRecord(value)],
  ['even', (value) => integer(value) && value % 2 === 0],
  ['odd', (value) => integer(value) && value % 2 !== 0],
]);
