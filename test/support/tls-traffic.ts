/** Law P5 for what {@link trafficLost} does not look at: publication of backends, certificates and the names they serve. */
import type { RuntimeState } from '../../src/plan/change-set.ts';
import type { Operation } from '../../src/protocol/protocol.ts';
import { statesAlong } from './traffic.ts';

/** What goes wrong on the way from a state through operations, in words; empty when nothing does. */
export function safetyLost(
  start: RuntimeState,
  operations: readonly Operation[],
): readonly string[] {
  const states = statesAlong(start, operations);
  const end = states.at(-1) ?? start;
  const unpublished = new Set<string>();
  return states.flatMap((state, step) => {
    const operation = operations[step - 1];
    const wrong = [
      ...(operation === undefined ? [] : publicationLost(operation, unpublished)),
      ...unpublishedRoutes(state, unpublished),
      ...missingCertificates(state),
      ...lostHosts(state, start, end),
    ];
    return wrong.map((what) => `after ${step} of ${operations.length} operations: ${what}`);
  });
}

/** Follows which backends are unpublished; one is never removed that is published. */
function publicationLost(operation: Operation, unpublished: Set<string>): readonly string[] {
  if (operation.kind === 'backend_add' || operation.kind === 'backend_unpublish') {
    unpublished.add(operation.backend);
  }
  if (operation.kind === 'backend_publish') unpublished.delete(operation.backend);
  if (operation.kind !== 'backend_remove') return [];
  return unpublished.delete(operation.backend) ? [] : [`${operation.backend} was published`];
}

const unpublishedRoutes = (
  { maps }: RuntimeState,
  unpublished: ReadonlySet<string>,
): readonly string[] =>
  [...maps.values()]
    .flatMap(({ entries }) => [...entries.values()])
    .filter(({ value }) => unpublished.has(value))
    .map(({ key, value }) => `${key} leads to ${value}, which is not published`);

const missingCertificates = ({ crtLists, files }: RuntimeState): readonly string[] =>
  [...crtLists.values()]
    .flatMap(({ lines }) => [...lines.values()])
    .filter(({ certificate }) => files.get(certificate) === undefined)
    .map(({ certificate }) => `a line names ${certificate}, which is not there`);

const hostsOf = ({ crtLists }: RuntimeState): ReadonlySet<string> =>
  new Set([...crtLists.values()].flatMap(({ lines }) => [...lines.values()].flatMap(filters)));

const filters = (line: { readonly filters: readonly string[] }): readonly string[] => line.filters;

const lostHosts = (
  state: RuntimeState,
  start: RuntimeState,
  end: RuntimeState,
): readonly string[] => {
  const now = hostsOf(state);
  return [...hostsOf(start).intersection(hostsOf(end))]
    .filter((host) => !now.has(host))
    .map((host) => `${host} has no certificate`);
};
