import {
  auditTime,
  BehaviorSubject,
  combineLatest,
  defer,
  distinctUntilChanged,
  finalize,
  map,
  mergeMap,
  Observable,
} from 'rxjs';
import { byCodeUnits } from '../cells/persistent-map.ts';
import { shareLatest } from '../operators/share-latest.ts';
import type { ResourceSource } from '../ports.ts';
import { type KubeObject, objectKey, objectRef } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { WatchedResource, WatchEvent } from '../snapshot/watch.ts';
import { CONFIG_RESOURCE, surplusConfigs } from './config.ts';
import { groupOf, resourceOfKind } from './directory-kinds.ts';
import { DirectoryReader } from './directory-reader.ts';
import { DEFAULT_TIMINGS, type DirectoryTimings } from './directory-timings.ts';
import { ManifestCatalogue, type ManifestKind, type Transition } from './manifest-catalogue.ts';

/** Options of {@link directorySource}. */
export interface DirectoryOptions {
  /** Waiting times; see {@link DirectoryTimings} for the defaults. */
  readonly timings?: Partial<DirectoryTimings>;
  /** For how long, in milliseconds, problems are gathered before they are told. Default 100. */
  readonly problemsMs?: number;
}

/** The group of our own kinds, which no configuration needs to watch. */
const OWN_GROUP = 'haproxy-haptic.org';

interface DirectoryUpdate {
  readonly transitions: readonly Transition[];
  /** Shared by all updates of one subscription and always at the newest. */
  readonly catalogue: ManifestCatalogue;
  readonly problems: readonly Problem[];
  readonly complete: boolean;
}

/**
 * A directory of manifests as a source of resources: what an API server is in a cluster. All watches share one reader,
 * which runs while anybody listens.
 *
 * Each watch starts with everything as one replacement, as soon as the directory has been read, and goes on with single
 * changes; it never errors. A broken file keeps its last good content, and so does everything when the directory is
 * gone; `problems$` says so.
 *
 * @param directory read with everything below it; dot-files are left out
 */
export const directorySource = (
  directory: string,
  options: DirectoryOptions = {},
): ResourceSource => {
  const timings = { ...DEFAULT_TIMINGS, ...options.timings };
  const update$ = readDirectory(directory, timings).pipe(shareLatest());
  const watched$ = new BehaviorSubject<readonly WatchedResource[]>([]);
  return {
    watch: (resource) =>
      defer(() => {
        watched$.next([...watched$.value, resource]);
        return watchEvents(update$, resource);
      }).pipe(
        finalize(() => {
          const at = watched$.value.indexOf(resource);
          watched$.next(watched$.value.toSpliced(at, 1));
        }),
      ),
    problems$: combineLatest([update$, watched$]).pipe(
      auditTime(options.problemsMs ?? 100),
      map(([{ problems, catalogue }, watched]) =>
        [
          ...problems,
          ...catalogue.duplicates(),
          ...surplusConfigs(
            catalogue.objects(CONFIG_RESOURCE.apiVersions, CONFIG_RESOURCE.resources),
          ),
          ...ignoredKinds(catalogue, watched),
        ].sort(byPlace),
      ),
      distinctUntilChanged((left, right) => JSON.stringify(left) === JSON.stringify(right)),
      shareLatest(),
    ),
  };
};

const readDirectory = (directory: string, timings: DirectoryTimings): Observable<DirectoryUpdate> =>
  new Observable((subscriber) => {
    const catalogue = new ManifestCatalogue();
    let transitions: Transition[] = [];
    const reader = new DirectoryReader(
      directory,
      {
        file: (path, content) => {
          const changed = catalogue.replaceFile(path, content?.entries ?? []);
          for (const transition of changed) transitions.push(transition);
        },
        settled: (complete) => {
          const settled = transitions;
          transitions = [];
          subscriber.next({
            transitions: settled,
            catalogue,
            problems: reader.problems(),
            complete,
          });
        },
      },
      timings,
    );
    reader.start();
    return () => {
      reader.stop();
    };
  });

const watchEvents = (
  update$: Observable<DirectoryUpdate>,
  resource: WatchedResource,
): Observable<WatchEvent> =>
  defer(() => {
    let synced = false;
    return update$.pipe(
      mergeMap(({ transitions, catalogue, complete }): readonly WatchEvent[] => {
        if (!complete) return [];
        if (synced) return transitions.flatMap((transition) => singleChange(transition, resource));
        synced = true;
        const { apiVersions, resources } = resource;
        return [{ type: 'Replaced', objects: catalogue.objects(apiVersions, resources) }];
      }),
    );
  });

/** What a watch of the resource sees of a transition; an object that moved to another version may leave it. */
const singleChange = (
  { before, after }: Transition,
  resource: WatchedResource,
): readonly WatchEvent[] => {
  const concerns = ({ apiVersion, kind }: KubeObject): boolean =>
    matches(resource, { apiVersion, resource: resourceOfKind(kind) });
  if (after !== undefined && concerns(after)) return [{ type: 'Upserted', object: after }];
  return before !== undefined && concerns(before)
    ? [{ type: 'Deleted', key: objectKey(before) }]
    : [];
};

const matches = (
  { apiVersions, resources }: WatchedResource,
  kind: Pick<ManifestKind, 'apiVersion' | 'resource'>,
): boolean => resources === kind.resource && apiVersions.includes(kind.apiVersion);

/** Kinds that nobody watches, told once each, and only when the configuration has said what it watches. */
const ignoredKinds = (
  catalogue: ManifestCatalogue,
  watched: readonly WatchedResource[],
): readonly Problem[] => {
  const isOwn = (apiVersion: string): boolean => groupOf(apiVersion) === OWN_GROUP;
  if (watched.every(({ apiVersions }) => apiVersions.every(isOwn))) return [];
  return catalogue
    .kinds()
    .filter((kind) => !isOwn(kind.apiVersion) && !watched.some((known) => matches(known, kind)))
    .map((kind) => ignoredKind(kind, watched));
};

const ignoredKind = (kind: ManifestKind, watched: readonly WatchedResource[]): Problem => {
  const { apiVersion, objects } = kind;
  const [first] = [...objects.values()].sort(
    (left, right) => byCodeUnits(left.file, right.file) || left.line - right.line,
  );
  const other = watched.find(({ resources }) => resources === kind.resource);
  const subject = objects.size === 1 ? 'One object' : `${objects.size} objects`;
  return {
    severity: 'warning',
    reason: 'KindNotWatched',
    message: `${subject} of kind ${kind.kind} (${apiVersion}) ignored: the configuration does not watch this kind.`,
    nextStep:
      other === undefined
        ? 'Correct apiVersion and kind, add the kind to watchedResources, or leave it as it is.'
        : `Write apiVersion ${other.apiVersions.join(' or ')}, which is watched.`,
    ...(first && {
      object: objectRef(first.object),
      place: { source: first.file, line: first.line },
    }),
  };
};

const byPlace = (left: Problem, right: Problem): number =>
  byCodeUnits(sourceOf(left), sourceOf(right)) ||
  lineOf(left) - lineOf(right) ||
  byCodeUnits(left.message, right.message);

const sourceOf = ({ place }: Problem): string => place?.source ?? '';

const lineOf = ({ place }: Problem): number => place?.line ?? 0;
