import {
  catchError,
  defer,
  filter,
  from,
  ignoreElements,
  merge,
  mergeMap,
  type Observable,
  take,
  tap,
} from 'rxjs';
import type { Discovery } from '../kube/api-resource.ts';
import { latestWins } from '../operators/latest-wins.ts';
import { schedule } from '../operators/schedule.ts';
import { shareLatest } from '../operators/share-latest.ts';
import type { Notification, Observer } from '../ports.ts';
import { deepEqual } from '../routing/fields.ts';
import type { StatusPatch } from '../render/render.ts';
import type { ObjectRef } from '../snapshot/objects.ts';
import { whileLeading } from './while-leading.ts';
import {
  asCall,
  createWriter,
  type Members,
  type WriteOne,
  type WriterOptions,
  type WrittenResource,
} from './write-objects.ts';

/** Options of {@link templateStatus}. */
export interface TemplateStatusOptions extends WriterOptions {
  readonly discovery: Discovery;
  /** Least time, in milliseconds, between two runs. Default 1000. */
  readonly intervalMs?: number;
}

/** Not the one of other statuses: an Ingress may have addresses from us and conditions from a template. */
const FIELD_MANAGER = 'haptic-templates';
const CONCURRENCY = 8;

type Statuses = readonly StatusPatch[];

/**
 * Writes what templates ask for (`Render.statuses`) to the status of objects, as far as the fleet runs it. What this term
 * has written is not written again; what a template no longer asks for is taken away. Only the leader writes.
 */
export const templateStatus =
  (options: TemplateStatusOptions): Observer =>
  (streams) =>
    defer(() => {
      const desired$ = streams.desired$.pipe(shareLatest());
      return merge(
        desired$.pipe(ignoreElements()),
        whileLeading(streams, (epoch) =>
          desired$.pipe(
            filter((desired) => desired.epoch === epoch),
            mergeMap(({ target }) => (target === undefined ? [] : [target.statuses])),
            writeStatuses(options),
          ),
        ),
      );
    });

/** One term. */
const writeStatuses =
  (options: TemplateStatusOptions) =>
  (statuses$: Observable<Statuses>): Observable<Notification> =>
    defer(() => {
      const writer = createWriter(options);
      const written = new Map<string, StatusPatch>();
      let newest: ReadonlyMap<string, StatusPatch> = new Map();
      const attempt$ = defer(() => {
        const gone = [...written].filter(([key]) => !newest.has(key));
        const work = [
          ...[...newest].filter(([key, patch]) => !isSame(written.get(key), patch)),
          ...gone.map(([key, { object }]) => [key, { object, status: {} }] as const),
        ];
        return writer.run((write) =>
          from(work).pipe(
            mergeMap(([key, patch]) => {
              const settled = (): void => {
                if (newest.has(key)) written.set(key, patch);
                else written.delete(key);
              };
              return writeOne(options.discovery, write, { patch, settled });
            }, CONCURRENCY),
          ),
        );
      });
      return statuses$.pipe(
        schedule({
          intervalMs: options.intervalMs ?? 1_000,
          classify: (last, next) =>
            last === next || (last ?? next).length + next.length === 0 ? 'none' : 'later',
        }),
        tap(({ value }) => {
          newest = new Map(value.map((patch) => [keyOf(patch.object), patch]));
        }),
        latestWins(() => writer.untilDone(attempt$)),
      );
    });

const isSame = (written: StatusPatch | undefined, wanted: StatusPatch): boolean =>
  written !== undefined &&
  written.object.uid === wanted.object.uid &&
  deepEqual(written.status, wanted.status);

const keyOf = ({ apiVersion, kind, namespace, name }: ObjectRef): string =>
  [apiVersion, kind, namespace, name].join(' ');

interface Work {
  readonly patch: { readonly object: ObjectRef; readonly status: Members };
  readonly settled: () => void;
}

const writeOne = (
  discovery: Discovery,
  write: WriteOne,
  { patch: { object, status }, settled }: Work,
): Observable<Notification> => {
  const { apiVersion, kind, namespace, name } = object;
  const asked: WrittenResource = { apiVersion, kind, plural: kind };
  return discovery.byKind(apiVersion, kind).pipe(
    take(1),
    catchError(asCall({ verb: 'list', resource: asked, namespace })),
    mergeMap((resource) =>
      write({
        // A kind that is not served any more has no objects whose status could be written.
        write: () =>
          resource === undefined
            ? undefined
            : {
                verb: 'apply',
                resource,
                namespace,
                name,
                subresource: 'status',
                body: { status },
                fieldManager: FIELD_MANAGER,
              },
        done: settled,
        refused: settled,
      }),
    ),
  );
};
