/** The function `event`: a template tells what is wrong with an object, and goes on. */
import type { Problem } from '../../snapshot/problem.ts';
import { objectOf } from './object-of.ts';
import { membersOf, optionalString, refuseArgument, stringArgument } from './parameters.ts';
import type { Run } from './run.ts';
import { EMPTY_TEXT, Text } from './text.ts';
import type { Arguments } from './values.ts';

const MEMBERS = ['severity', 'reason', 'message', 'nextStep', 'field'];
const MOST_CHARACTERS = 500;

/**
 * `{{ event(object, {reason, message}) }}`: a problem of the object, told once for each cell. What comes from data stands in
 * it on one line.
 */
export const declareEvent = ({ positional }: Arguments, { cell }: Run): Text => {
  const object = objectOf(positional[0], 0);
  if (object === undefined) return refuseArgument('event()', 'takes an object of Kubernetes first');
  const members = membersOf(positional[1], 'event()', MEMBERS);
  const field = optionalString(members['field'], 'event().field');
  const { source, line, column } = cell.callPlace;
  const problem: Problem = {
    severity: severityOf(members['severity']),
    reason: reasonOf(members['reason']),
    message: onOneLine(stringArgument(members['message'], 'event().message')),
    nextStep: onOneLine(
      optionalString(members['nextStep'], 'event().nextStep') ?? 'Correct the object.',
    ),
    object,
    ...(field === undefined ? {} : { field: onOneLine(field) }),
    place: { source, line, column },
  };
  const told = (cell.told ??= new Set());
  const sameAs = identity(problem);
  if (told.has(sameAs)) return EMPTY_TEXT;
  told.add(sameAs);
  cell.effects.problems.push(problem);
  return EMPTY_TEXT;
};

const identity = ({ object, reason, message, field }: Problem): string =>
  JSON.stringify([object, reason, message, field]);

const severityOf = (value: unknown): Problem['severity'] => {
  const severity = optionalString(value, 'event().severity') ?? 'warning';
  if (severity === 'warning' || severity === 'error') return severity;
  return refuseArgument('event().severity', 'is neither "warning" nor "error"');
};

/** A label of metrics, so no tenant may make one. */
const reasonOf = (value: unknown): string =>
  value instanceof Text && /^[A-Z][A-Za-z0-9]{0,62}$/.test(value.value)
    ? value.value
    : refuseArgument('event().reason', 'is no literal word such as "InvalidLimit"');

const onOneLine = (text: string): string =>
  text.slice(0, MOST_CHARACTERS).replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, '?');
