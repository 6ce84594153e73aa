import { defer, EMPTY, filter, ignoreElements, merge, type Observable, switchMap } from 'rxjs';
import { shareLatest } from '../operators/share-latest.ts';
import { isType, type Notification, type NotificationOf, type Observer } from '../ports.ts';
import { acceptedSecret } from '../streams/accepted-config.ts';
import { keepSecret } from './keep-secret.ts';
import { whileLeading } from './while-leading.ts';
import { createWriter, type Writer, type WriterOptions } from './write-objects.ts';

/**
 * Keeps the newest accepted configuration in a Secret beside its object, for replicas that start while the object is
 * refused. Only the leader writes.
 */
export const storeAcceptedConfig =
  (options: WriterOptions): Observer =>
  (streams) =>
    defer(() => {
      const loaded$ = streams.notifications$.pipe(
        filter(isType('ConfigLoaded')),
        filter(({ object }) => object !== undefined),
        shareLatest(),
      );
      return merge(
        loaded$.pipe(ignoreElements()),
        whileLeading(streams, () =>
          defer(() => {
            const writer = createWriter(options);
            return loaded$.pipe(switchMap((loaded) => store(loaded, writer)));
          }),
        ),
      );
    });

const store = (
  { object, observedGeneration: generation = 0, spec }: NotificationOf<'ConfigLoaded'>,
  writer: Writer,
): Observable<Notification> => {
  if (object === undefined) return EMPTY;
  const { namespace, name } = object;
  const tooLarge = {
    severity: 'warning',
    reason: 'ConfigTooLargeToKeep',
    message: `HAProxyTemplateConfig ${namespace}/${name} is too large to be kept for replicas that start while a newer generation is refused.`,
    nextStep: 'Move templates that rarely change into a library, or correct refusals soon.',
    object,
  } as const;
  return keepSecret(acceptedSecret(object, { generation, spec }), { writer, namespace, tooLarge });
};
