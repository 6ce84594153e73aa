import { type Observable, of } from 'rxjs';
import type { Notification } from '../ports.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { PackedSecret } from '../streams/packed-secret.ts';
import type { Writer } from './write-objects.ts';

const SECRET = { apiVersion: 'v1', kind: 'Secret', plural: 'secrets' };

/** Writes a Secret beside the configuration until it is there; one that does not fit is told and left out. */
export const keepSecret = (
  secret: PackedSecret | undefined,
  {
    writer,
    namespace,
    tooLarge,
  }: { readonly writer: Writer; readonly namespace: string; readonly tooLarge: Problem },
): Observable<Notification> => {
  if (secret === undefined) {
    return of(writer.withheld({ resource: SECRET, namespace }, tooLarge));
  }
  const write = { verb: 'apply', resource: SECRET, namespace, ...secret } as const;
  return writer.untilDone(
    writer.run((writeOne) =>
      writeOne({ write: () => write, done: () => undefined, refused: () => undefined }),
    ),
  );
};
