/**
 * The process that vets one configuration, started by the controller or a command with an IPC channel and limits of
 * memory and time. It holds objects of the cluster and rights to nothing, and ends when who started it does.
 */
import type { FromVetter, ToVetter } from './vetting/messages.ts';
import { vet } from './vetting/vetter.ts';

const inbox: ToVetter[] = [];
let arrived = (): void => undefined;

process.once('disconnect', () => process.exit(0));
process.on('message', (message) => {
  inbox.push(message as ToVetter);
  arrived();
});

const receive = async (): Promise<ToVetter> => {
  for (;;) {
    const next = inbox.shift();
    if (next !== undefined) return next;
    await new Promise<void>((resolve) => {
      arrived = resolve;
    });
  }
};

const send = (message: FromVetter): Promise<void> =>
  new Promise((resolve, reject) => {
    process.send?.(message, undefined, undefined, (error) => {
      if (error === null) resolve();
      else reject(error);
    });
  });

await vet({ send, receive }, () => performance.now());
process.disconnect?.();
