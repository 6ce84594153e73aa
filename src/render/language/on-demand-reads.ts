import { Pending } from '../../cells/pending.ts';
import { isAwaited, unreadableReason } from '../../snapshot/content.ts';
import type { KubeObject } from '../../snapshot/objects.ts';
import type { CellRun } from './run.ts';

/**
 * What a look-up in an on-demand store found, with content. Each object is read by itself too, so that it is known which
 * ones are needed. Objects whose content cannot be had are as good as absent.
 *
 * Throws {@link Pending} while the content of any is awaited.
 */
export const withContent = (resource: string, seen: unknown, cell: CellRun): unknown => {
  const found = (Array.isArray(seen) ? seen : [seen]) as readonly (KubeObject | undefined)[];
  let awaited: string | undefined;
  for (const object of found) {
    if (object === undefined) continue;
    const { namespace = '', name } = object.metadata;
    cell.reads.read(cell.world.storeRead(resource, { type: 'get', keys: [namespace, name] }));
    if (isAwaited(object)) awaited ??= `resources.${resource} ${namespace}/${name}`;
  }
  if (awaited !== undefined) throw new Pending(awaited);
  const readable = found.filter(
    (object) => object !== undefined && unreadableReason(object) === undefined,
  );
  return Array.isArray(seen) ? readable : readable[0];
};
