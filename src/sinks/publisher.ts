import {
  combineLatest,
  defer,
  distinctUntilChanged,
  filter,
  ignoreElements,
  merge,
  type Observable,
  scan,
  startWith,
  tap,
  timer,
} from 'rxjs';
import { latestWins } from '../operators/latest-wins.ts';
import { schedule } from '../operators/schedule.ts';
import { shareLatest } from '../operators/share-latest.ts';
import type { Desired, Notification, Observer } from '../ports.ts';
import type { Digest } from '../protocol/protocol.ts';
import type { ConfigPublishingSettings } from '../render/render.ts';
import { type FleetStatus, fleetStep, initialFleet } from './fleet-status.ts';
import { type Publication, type PublicationTarget, Publications } from './publication.ts';
import { PART_BYTES, publishedFiles } from './published-files.ts';
import { statusAfter } from './published-status.ts';
import { whileLeading } from './while-leading.ts';
import { createWriter, type WriterOptions } from './write-objects.ts';

/** Options of {@link publisher}. */
export interface PublisherOptions extends WriterOptions, Omit<PublicationTarget, 'partBytes'> {
  /** `spec.controller.configPublishing` of the configuration in force; emits on subscription. */
  readonly publishing$: Observable<ConfigPublishingSettings>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Largest part of a file in bytes. Default: what fits into an object of 1 MiB. */
  readonly partBytes?: number;
  /** How often, in milliseconds, what lies at the API server is listed anew. Default ten minutes. */
  readonly relistMs?: number;
}

/** What is published, as one value. */
interface Level {
  readonly desired: Desired;
  readonly fleet: FleetStatus;
  readonly publishing: ConfigPublishingSettings;
  /** Counts the lists. */
  readonly list: number;
}

const TEN_MINUTES_MS = 600_000;
/** Published plans whose checksum is remembered, for pods that are behind. */
const REMEMBERED_PLANS = 32;

/**
 * Publishes what the fleet runs as `HAProxyCfg` and its sibling kinds, with the gate's verdict and each pod's deployment
 * in the status (docs/operations.md). It moves with dispatch, and with acceptance while the gate holds. At most one
 * publication each `configPublishInterval`, the newest wins and the last always goes; what is equal is not written;
 * only the leader writes.
 */
export const publisher =
  (options: PublisherOptions): Observer =>
  (streams) =>
    defer(() => {
      const fleet$ = streams.notifications$.pipe(
        scan(fleetStep(options.now), initialFleet),
        startWith(initialFleet),
        distinctUntilChanged(),
        shareLatest(),
      );
      const desired$ = streams.desired$.pipe(shareLatest());
      return merge(
        fleet$.pipe(ignoreElements()),
        desired$.pipe(ignoreElements()),
        whileLeading(streams, (epoch) =>
          combineLatest({
            desired: desired$.pipe(filter((desired) => desired.epoch === epoch)),
            fleet: fleet$,
            publishing: options.publishing$,
            list: timer(0, options.relistMs ?? TEN_MINUTES_MS),
          }).pipe(publishLevels(options)),
        ),
      );
    });

/** One term. */
const publishLevels =
  (options: PublisherOptions) =>
  (level$: Observable<Level>): Observable<Notification> =>
    defer(() => {
      const writer = createWriter(options);
      const objects = new Publications({ partBytes: PART_BYTES, ...options }, writer);
      const checksums = new Map<Digest, string>();
      let newest: Level | undefined;
      let listed = 0;
      /** A run that is tried again publishes what is newest by then. */
      const attempt = (scheduled: Level): Observable<Notification> =>
        defer(() => {
          const level = newest ?? scheduled;
          if (level.list !== listed) objects.forget();
          listed = level.list;
          rememberChecksum(checksums, level.desired);
          return objects.publish(publicationOf(level, { checksums, now: options.now }));
        });
      return level$.pipe(
        tap((level) => {
          newest = level;
        }),
        schedule({
          intervalMs: ({ desired }) => desired.settings.configPublishIntervalMs,
          classify: (last, next) => (isSame(last, next) ? 'none' : 'later'),
        }),
        latestWins(({ value }) => writer.untilDone(attempt(value))),
      );
    });

const isSame = (last: Level | undefined, next: Level): boolean =>
  last?.list === next.list &&
  last.fleet === next.fleet &&
  last.publishing.enabled === next.publishing.enabled &&
  last.publishing.compressionThreshold === next.publishing.compressionThreshold &&
  last.desired.phase === next.desired.phase &&
  last.desired.target?.plan.id === next.desired.target?.plan.id;

const rememberChecksum = (checksums: Map<Digest, string>, { target }: Desired): void => {
  if (target === undefined || checksums.has(target.plan.id)) return;
  checksums.set(target.plan.id, `sha256:${target.plan.config.digest}`);
  const [oldest] = checksums.keys();
  if (checksums.size > REMEMBERED_PLANS && oldest !== undefined) checksums.delete(oldest);
};

const publicationOf = (
  { desired, fleet, publishing }: Level,
  {
    checksums,
    now,
  }: { readonly checksums: ReadonlyMap<Digest, string>; readonly now: () => number },
): Publication => {
  const { compressionThreshold } = publishing;
  if (!publishing.enabled) {
    return { files: [], compressionThreshold, status: undefined, prunes: true };
  }
  const { target, phase } = desired;
  const facts = { planId: target?.plan.id, checksums, phase, fleet };
  return {
    files: target === undefined ? [] : publishedFiles(target),
    compressionThreshold,
    status: (observed) => statusAfter(observed, facts, now()),
    prunes: target !== undefined,
  };
};
