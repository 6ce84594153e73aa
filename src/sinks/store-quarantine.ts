import {
  combineLatest,
  defer,
  EMPTY,
  filter,
  ignoreElements,
  merge,
  skipWhile,
  switchMap,
} from 'rxjs';
import { shareLatest } from '../operators/share-latest.ts';
import { isType, type Observer } from '../ports.ts';
import { quarantineSecret } from '../streams/kept-quarantine.ts';
import { keepSecret } from './keep-secret.ts';
import { whileLeading } from './while-leading.ts';
import { createWriter, type WriterOptions } from './write-objects.ts';

/** Keeps what is in quarantine in a Secret beside the configuration, for whoever leads next. Only the leader writes. */
export const storeQuarantine =
  (options: WriterOptions): Observer =>
  (streams) =>
    defer(() => {
      const loaded$ = streams.notifications$.pipe(filter(isType('ConfigLoaded')), shareLatest());
      const quarantine$ = streams.notifications$.pipe(
        filter(isType('Quarantine')),
        // Most installations never have anything to keep.
        skipWhile(({ objects }) => objects.length === 0),
        shareLatest(),
      );
      return merge(
        merge(loaded$, quarantine$).pipe(ignoreElements()),
        whileLeading(streams, () =>
          defer(() => {
            const writer = createWriter(options);
            return combineLatest([loaded$, quarantine$]).pipe(
              switchMap(([{ object }, { stored }]) => {
                if (object === undefined) return EMPTY;
                const { namespace, name } = object;
                const tooLarge = {
                  severity: 'warning',
                  reason: 'QuarantineTooLargeToKeep',
                  message: `What is in quarantine under HAProxyTemplateConfig ${namespace}/${name} is too large to be kept for the next leader.`,
                  nextStep: 'Correct the objects in quarantine; the next leader finds them anew.',
                  object,
                } as const;
                const secret = quarantineSecret(object, stored());
                return keepSecret(secret, { writer, namespace, tooLarge });
              }),
            );
          }),
        ),
      );
    });
