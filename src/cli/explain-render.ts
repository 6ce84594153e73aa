import { EMPTY, filter, firstValueFrom, map, NEVER, of, switchMap, take, timeout } from 'rxjs';
import { isType, type RenderEngine } from '../ports.ts';
import type { Render } from '../render/render.ts';
import { directorySource } from '../streams/directory.ts';
import { renderWithQuarantine } from '../streams/quarantine.ts';
import { snapshots } from '../streams/snapshots.ts';
import { compiledConfigs } from './compile.ts';
import type { OneShotOptions } from './compile-options.ts';
import { manifestDirectory } from './manifest-directory.ts';

/** Longest search of the objects that fail a render, in milliseconds. */
const SEARCH_MS = 60_000;

/**
 * A render of a directory inside this process, with everything that explains it, and without the objects that fail it.
 * Only for what is known to end: templates that do not would take this process with them.
 *
 * @returns undefined when nothing comes out, as when the directory changes meanwhile
 */
export const renderHere = async (
  path: string,
  options: OneShotOptions,
): Promise<Render | undefined> => {
  const source = directorySource(await manifestDirectory(path), { problemsMs: 0 });
  const render$ = compiledConfigs(source, options).pipe(
    take(1),
    switchMap((event) =>
      event.ok
        ? snapshots((resource) => source.watch(resource), event.engine.watched).pipe(
            served(event.engine),
            filter(isType('Rendered')),
            map(({ render }) => render),
          )
        : of(undefined),
    ),
    timeout({ first: SEARCH_MS, with: () => of(undefined) }),
  );
  return firstValueFrom(render$, { defaultValue: undefined });
};

/** As it would be served; HAProxy is not asked. */
const served = (engine: RenderEngine) =>
  renderWithQuarantine({
    engine,
    render: (snapshot) => engine.render(snapshot),
    verdict$: NEVER,
    stored: undefined,
    stored$: EMPTY,
    check: () => NEVER,
    maxWaitMs: 1_000,
  });
