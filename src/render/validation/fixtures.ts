import { applyBatch, emptySnapshot } from '../../snapshot/apply-batch.ts';
import { REPLACEMENT_KEY } from '../../snapshot/folded-changes.ts';
import type { KubeObject } from '../../snapshot/objects.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import type { WatchedResource } from '../../snapshot/watch.ts';
import { isMembers, memberPath, type Report } from '../config/field-checks.ts';
import { nearest } from '../config/layers.ts';
import type { ValidationTestSpec } from '../config/spec.ts';

/**
 * The snapshot that the fixtures of a test make: objects by watched resource. Of two with one namespace and name the
 * later counts. Undefined after a report of what is not watched or no object.
 */
export const fixtureSnapshot = (
  { fixtures = new Map() }: ValidationTestSpec,
  watched: readonly WatchedResource[],
  report: Report,
): Snapshot | undefined => {
  const names = watched.map(({ name }) => name);
  let refusals = 0;
  const refuse: Report = (...words) => {
    refusals += 1;
    report(...words);
  };
  const lists = [...fixtures].map(([name, objects]) => {
    const path = memberPath('fixtures', name);
    if (!names.includes(name)) {
      refuse(path, `is not watched; ${nearest(name, names)}`, 'Use a name of watchedResources.');
    }
    return [
      name,
      objects.flatMap((object, at) => objectIn(object, `${path}[${at}]`, refuse) ?? []),
    ] as const;
  });
  if (refusals > 0) return undefined;
  const batch = lists.map(([name, objects]) => {
    const event = { type: 'Replaced', objects: objects } as const;
    return [name, new Map([[REPLACEMENT_KEY, event]])] as const;
  });
  return applyBatch(emptySnapshot(watched), new Map(batch));
};

const objectIn = (value: unknown, path: string, report: Report): KubeObject | undefined => {
  const object = isMembers(value) ? value : {};
  const metadata = isMembers(object['metadata']) ? object['metadata'] : {};
  const named = [object['apiVersion'], object['kind'], metadata['name']];
  if (named.every((text) => typeof text === 'string' && text !== '')) return object as KubeObject;
  report(path, 'lacks apiVersion, kind or metadata.name', 'Write it as in a manifest.');
  return undefined;
};
