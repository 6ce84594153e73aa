import { mkdirSync, mkdtempSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { firstValueFrom, type Observable, type Subscription } from 'rxjs';
import { type KubeObject, objectKey } from '../../src/snapshot/objects.ts';
import type { Problem } from '../../src/snapshot/problem.ts';
import type { WatchEvent } from '../../src/snapshot/watch.ts';
import { type DirectoryOptions, directorySource } from '../../src/streams/directory.ts';
import { watched } from './watched.ts';

export const SERVICES = watched('services');

/** A Service as YAML; `port` tells its states apart. */
export const serviceYaml = (name: string, port = 80): string =>
  `apiVersion: v1\nkind: Service\nmetadata:\n  name: ${name}\nspec:\n  ports:\n    - port: ${port}\n`;

/** `name:port` of a Service. */
export const brief = (object: KubeObject): string => {
  const { ports } = object['spec'] as { readonly ports: readonly { readonly port: number }[] };
  return `${object.metadata.name}:${ports[0]?.port ?? 0}`;
};

export const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

/** Waits until something holds, for at most a few seconds. */
export const until = async (holds: () => boolean, ms = 8_000): Promise<void> => {
  const end = performance.now() + ms;
  while (!holds()) {
    if (performance.now() > end) throw new Error('what was awaited did not happen');
    await pause(2);
  }
};

/** The first value of a stream that must have one. */
export const firstOf = <T>(source$: Observable<T>): Promise<T | 'nothing'> =>
  firstValueFrom(source$, { defaultValue: 'nothing' });

/** A real directory, its source, and what a watch of Services and the list of problems show of it. */
export class WatchedDirectory {
  readonly path = mkdtempSync(join(tmpdir(), 'haptic-manifests-'));
  readonly events: WatchEvent[] = [];
  readonly objects = new Map<string, KubeObject>();
  problems: readonly Problem[] | undefined;
  readonly source;
  readonly #subscriptions: Subscription[];

  constructor(files: Readonly<Record<string, string>> = {}, options: DirectoryOptions = {}) {
    for (const [name, text] of Object.entries(files)) this.write(name, text);
    this.source = directorySource(this.path, { problemsMs: 20, ...options });
    this.#subscriptions = [
      this.source.watch(SERVICES).subscribe((event) => {
        this.#take(event);
      }),
      this.source.problems$.subscribe((problems) => (this.problems = problems)),
    ];
  }

  get names(): string {
    return [...this.objects.values()].map(brief).sort().join(' ');
  }

  get reasons(): string {
    return (this.problems ?? []).map(({ reason }) => reason).join(' ');
  }

  /** Kinds of events after the first one. */
  get changes(): string {
    return this.events
      .slice(1)
      .map((event) =>
        event.type === 'Upserted'
          ? `+${brief(event.object)}`
          : event.type === 'Deleted'
            ? `-${event.key}`
            : '*',
      )
      .join(' ');
  }

  file(name: string): string {
    return join(this.path, name);
  }

  /** Truncates and writes. */
  write(name: string, text: string | Uint8Array): void {
    mkdirSync(dirname(this.file(name)), { recursive: true });
    writeFileSync(this.file(name), text);
  }

  /** Writes beside the file and renames over it, as careful editors do. */
  exchange(name: string, text: string): void {
    const beside = this.file(join(dirname(name), '.beside.tmp'));
    writeFileSync(beside, text);
    renameSync(beside, this.file(name));
  }

  /** Removes and writes anew, as some tools do. */
  recreate(name: string, text: string): void {
    unlinkSync(this.file(name));
    writeFileSync(this.file(name), text);
  }

  synced(): Promise<void> {
    return until(() => this.events.length > 0);
  }

  close(): void {
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    rmSync(this.path, { recursive: true, force: true });
  }

  #take(event: WatchEvent): void {
    this.events.push(event);
    if (event.type === 'Deleted') {
      this.objects.delete(event.key);
      return;
    }
    if (event.type === 'Replaced') this.objects.clear();
    for (const object of event.type === 'Replaced' ? event.objects : [event.object]) {
      this.objects.set(objectKey(object), object);
    }
  }
}
