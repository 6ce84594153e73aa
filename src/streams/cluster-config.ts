import {
  catchError,
  concat,
  defer,
  distinctUntilChanged,
  EMPTY,
  map,
  mergeMap,
  type Observable,
  of,
  switchMap,
  tap,
  throwError,
} from 'rxjs';
import { retryBackoff } from '../operators/retry-backoff.ts';
import type { ConfigEvent, ConfigOrigin, ResourceSource } from '../ports.ts';
import { parseConfig, type ParseConfigOptions } from '../render/config/parse-config.ts';
import type { TemplateConfig } from '../render/config/template-config.ts';
import { type KubeObject, objectRef } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import type { Findings } from '../vetting/messages.ts';
import type { ConfigName } from './accepted-config.ts';
import { type CompileSettings, compileConfig } from './compile-config.ts';
import { CONFIG_RESOURCE, settledConfigs } from './config.ts';
import { renderEngine } from './render-engine.ts';

/** Options of {@link clusterConfig}. */
export interface ClusterConfigOptions extends ParseConfigOptions {
  /** The one `HAProxyTemplateConfig` to follow. */
  readonly config: ConfigName;
  readonly settings: CompileSettings;
  /** Finds out whether a configuration can take over; cancelled by unsubscribing. */
  readonly vet: (config: TemplateConfig) => Observable<Findings>;
  /** The configuration that was accepted last, by any replica; asked for only when the newest is refused at start. */
  readonly stored$: Observable<KubeObject | undefined>;
}

/** Waits before a refused configuration is vetted again, in milliseconds: while another one serves, and while none does. */
const AGAIN = {
  serving: { initialMs: 30_000, maxMs: 300_000, resetAfterMs: Infinity },
  idle: { initialMs: 2_000, maxMs: 30_000, resetAfterMs: Infinity },
};
const MOST_PROBLEMS = 50;

/**
 * The configuration of a controller in a cluster. Every generation is vetted before it is emitted (S63, G13); a newer one
 * cancels the vetting of an older one; a refused one changes nothing and is told, and is vetted again with growing waits
 * where something else than itself may let it pass. While nothing serves yet and the newest is refused, the one that was
 * accepted last comes instead. Errors only when the source does.
 */
export const clusterConfig = (
  source: ResourceSource,
  options: ClusterConfigOptions,
): Observable<ConfigEvent> =>
  defer(() => {
    const { namespace, name } = options.config;
    const state: State = { serving: false, note: undefined };
    const resource = {
      ...CONFIG_RESOURCE,
      namespaces: [namespace],
      fieldSelector: { 'metadata.name': name },
    };
    return settledConfigs(source, resource).pipe(
      map((objects) =>
        objects.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name),
      ),
      distinctUntilChanged(isSameGeneration),
      switchMap((object) =>
        object === undefined
          ? of<ConfigEvent>({ ok: false, problems: [missing(options.config, state)] })
          : untilAccepted(object, options, state),
      ),
      distinctUntilChanged(isSameRefusal),
    );
  });

interface State {
  /** Whether any configuration was emitted. */
  serving: boolean;
  /** What is to be told about the one that was accepted earlier. */
  note: Problem | undefined;
}

interface Attempt {
  readonly event: ConfigEvent;
  readonly mayPass: boolean;
}

const isSameGeneration = (left: KubeObject | undefined, right: KubeObject | undefined): boolean =>
  left === right ||
  (left?.metadata.generation !== undefined &&
    left.metadata.generation === right?.metadata.generation &&
    left.metadata.uid === right.metadata.uid);

const isSameRefusal = (left: ConfigEvent, right: ConfigEvent): boolean =>
  !left.ok &&
  !right.ok &&
  left.observedGeneration === right.observedGeneration &&
  JSON.stringify(left.problems) === JSON.stringify(right.problems);

/** Vets a generation until it is accepted, or refused for good. */
const untilAccepted = (
  object: KubeObject,
  options: ClusterConfigOptions,
  state: State,
): Observable<ConfigEvent> =>
  defer(() => attempt(object, options)).pipe(
    mergeMap(({ event, mayPass }) =>
      event.ok ? of(event) : afterRefusal({ event, mayPass, object }, options, state),
    ),
    tap((event) => {
      if (event.ok) state.serving = true;
      if (event.ok && event.object !== undefined) state.note = undefined;
    }),
    retryBackoff({
      ...AGAIN.idle,
      shouldRetry: (error) => error instanceof Again && !state.serving,
    }),
    retryBackoff({ ...AGAIN.serving, shouldRetry: (error) => error instanceof Again }),
  );

/** Nothing of it is for people: the reasons are told before. */
class Again extends Error {}

interface Refused {
  readonly event: Extract<ConfigEvent, { ok: false }>;
  readonly mayPass: boolean;
  readonly object: KubeObject;
}

/** The refusal is told at once, and again when there is something to say about the one that serves instead. */
const afterRefusal = (
  { event, mayPass, object }: Refused,
  options: ClusterConfigOptions,
  state: State,
): Observable<ConfigEvent> => {
  const told$ = defer(() =>
    of({
      ...event,
      problems: [...event.problems, ...(state.note === undefined ? [] : [state.note])],
    }),
  );
  return concat(
    told$,
    defer(() => (state.serving ? EMPTY : standIn(object, options, state))),
    told$,
    defer(() => {
      const standInMayPass = !state.serving && state.note !== undefined;
      return mayPass || standInMayPass ? throwError(() => new Again()) : EMPTY;
    }),
  );
};

/** The configuration that was accepted last, vetted like any other. */
const standIn = (
  object: KubeObject,
  options: ClusterConfigOptions,
  state: State,
): Observable<ConfigEvent> =>
  options.stored$.pipe(
    switchMap((stored) => {
      if (stored === undefined || isSameSpec(stored, object)) return EMPTY;
      return attempt(stored, options).pipe(
        mergeMap(({ event }): readonly ConfigEvent[] => {
          state.note = standInNote(stored, event);
          return event.ok ? [{ ok: true, engine: event.engine }] : [];
        }),
      );
    }),
    catchError((error: unknown) => {
      state.note = unreadable(error);
      return EMPTY;
    }),
  );

const isSameSpec = (left: KubeObject, right: KubeObject): boolean =>
  JSON.stringify(left['spec']) === JSON.stringify(right['spec']);

/** One configuration through all checks; what fails in an unforeseen way is a refusal too. */
const attempt = (object: KubeObject, options: ClusterConfigOptions): Observable<Attempt> => {
  const origin: ConfigOrigin = {
    object: objectRef(object),
    observedGeneration: object.metadata.generation ?? 0,
  };
  const refused = ({ problems, mayPass }: Findings): Attempt => ({
    event: { ok: false, ...origin, problems: toldProblems(problems, { object, mayPass }) },
    mayPass,
  });
  return defer(() => {
    const parsed = parseConfig(object, options);
    if (!parsed.ok) return of(refused({ problems: parsed.problems, mayPass: false }));
    return options.vet(parsed.config).pipe(
      map((findings): Attempt => {
        if (findings.problems.length > 0) return refused(findings);
        const created = compileConfig(parsed.config, options.settings);
        if (!created.ok) return refused({ problems: created.problems, mayPass: false });
        const engine = renderEngine(created.engine);
        return { event: { ok: true, engine, ...origin, spec: object['spec'] }, mayPass: true };
      }),
    );
  }).pipe(
    catchError((error: unknown) => of(refused({ problems: [defect(error)], mayPass: true }))),
  );
};

/** Every problem names an object: its own, or the configuration. */
const toldProblems = (
  problems: readonly Problem[],
  { object, mayPass }: { readonly object: KubeObject; readonly mayPass: boolean },
): readonly Problem[] => {
  const surplus = problems.length - MOST_PROBLEMS;
  const told = problems.slice(0, MOST_PROBLEMS);
  return [
    ...told.map((problem) => ({ object: objectRef(object), ...problem })),
    ...(surplus > 0 ? [furtherProblems(object, surplus)] : []),
    ...(mayPass ? [triedAgain(object)] : []),
  ];
};

const nameOf = ({ namespace, name }: ConfigName): string =>
  `HAProxyTemplateConfig ${namespace}/${name}`;

const missing = (config: ConfigName, { serving }: State): Problem => ({
  severity: 'error',
  reason: 'ConfigMissing',
  message: serving
    ? `${nameOf(config)} was deleted; what it said last stays in force.`
    : `There is no ${nameOf(config)}, so nothing is configured.`,
  nextStep: serving
    ? 'Create it again: a controller that starts needs it.'
    : 'Create it, or name another one with --config.',
});

const furtherProblems = (object: KubeObject, count: number): Problem => ({
  severity: 'error',
  reason: 'FurtherProblems',
  message: `There are ${count} further problems.`,
  nextStep: 'Correct those that are told first.',
  object: objectRef(object),
});

const triedAgain = (object: KubeObject): Problem => ({
  severity: 'warning',
  reason: 'ConfigTriedAgain',
  message:
    'It is vetted again by itself, soon and then at least every 5 minutes, because something else may let it pass.',
  nextStep: 'Correct the configuration, or what is named besides.',
  object: objectRef(object),
});

const standInNote = (stored: KubeObject, event: ConfigEvent): Problem => {
  const which = `The configuration that was accepted earlier (generation ${stored.metadata.generation ?? 0})`;
  if (event.ok) {
    return {
      severity: 'warning',
      reason: 'AcceptedConfigServes',
      message: `${which} serves instead.`,
      nextStep: 'Correct the configuration.',
    };
  }
  return {
    severity: 'error',
    reason: 'AcceptedConfigRefused',
    message: `${which} is refused as well: ${event.problems[0]?.message ?? ''}`,
    nextStep: 'Correct the configuration.',
  };
};

const unreadable = (error: unknown): Problem => ({
  severity: 'error',
  reason: 'AcceptedConfigUnreadable',
  message: `Whether a configuration was accepted earlier could not be read: ${error instanceof Error ? error.message : String(error)}.`,
  nextStep: 'Check that the controller may get Secrets in its own namespace.',
});

/** Tells what kind of error it was, and not its message, which may quote values. */
const defect = (error: unknown): Problem => ({
  severity: 'error',
  reason: 'InternalError',
  message: `A defect of HAPTIC ended the vetting: ${error instanceof Error ? error.name : 'unknown'}.`,
  nextStep: 'Report it; a template that nests very deeply may be the occasion.',
});
