import { EMPTY, lastValueFrom, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { RenderEngine } from '../../../src/ports.ts';
import { applyBatch, emptySnapshot } from '../../../src/snapshot/apply-batch.ts';
import type { Snapshot } from '../../../src/snapshot/snapshot.ts';
import { searchCulprits } from '../../../src/streams/search-culprits.ts';
import { engine, passed, renderOf, thing, verdictAfter } from '../../support/world.ts';
import { defaultSettings } from '../../support/renders.ts';
import { watched } from '../../support/watched.ts';

const routes = Array.from({ length: 300 }, (_, at) =>
  thing('Route', at % 3 === 0 ? `bad-${String(at)}` : `good-${String(at)}`),
);

const bad = applyBatch(
  emptySnapshot([watched('servers'), watched('routes')]),
  new Map([['routes', new Map([['*', { type: 'Replaced', objects: routes }]])]]),
);

const isBad = (snapshot: Snapshot): boolean =>
  snapshot
    .store('routes')
    .list()
    .some(({ metadata }) => metadata.name.startsWith('bad'));

/** Renders take no time at all. */
const atOnce: RenderEngine = {
  ...engine(),
  fork: () => atOnce,
  render: (snapshot) =>
    isBad(snapshot)
      ? of({ ok: false, failure: { phase: 'template', problems: [] } })
      : of({
          ok: true,
          render: renderOf(snapshot, { generation: 'g1', settings: defaultSettings }),
        }),
};

describe('searchCulprits', () => {
  it('R6: finds a hundred objects with an engine that answers at once', async () => {
    const check = verdictAfter(0, () => passed);
    const wanted = { bad, good: undefined, by: 'render' } as const;
    const found = await lastValueFrom(searchCulprits(wanted, { engine: atOnce, check }), {
      defaultValue: undefined,
    });
    expect(found?.map(({ object }) => object.name)).toStrictEqual(
      routes
        .map(({ metadata }) => metadata.name)
        .filter((name) => name.startsWith('bad'))
        .sort(),
    );
  });

  it('finds nobody when the checker says nothing', async () => {
    const wanted = { bad, good: undefined, by: 'check' } as const;
    const mute = { ...atOnce, render: () => EMPTY, fork: () => mute };
    const found$ = searchCulprits(wanted, { engine: mute, check: () => EMPTY });
    expect(await lastValueFrom(found$, { defaultValue: undefined })).toStrictEqual([]);
  });
});
