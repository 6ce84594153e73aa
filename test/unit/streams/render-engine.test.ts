import { describe, expect, it } from 'vitest';
import { firstOf } from '../../support/manifest-directory.ts';
import type { RenderResult, TemplateEngine } from '../../../src/render/render.ts';
import { renderEngine } from '../../../src/streams/render-engine.ts';
import { defaultController, defaultSettings, makeRender } from '../../support/renders.ts';

const engineOf = (steps: () => Generator<void, RenderResult>): TemplateEngine => ({
  generation: 'g',
  watched: [],
  settings: defaultSettings,
  controller: defaultController,
  podSelector: {},
  protective: new Set(),
  readsFor: () => () => new Set(),
  fork: () => engineOf(steps),
  steps,
  stats: () => ({ cells: 0, reads: 0 }),
});
const result = (steps: () => Generator<void, RenderResult>): Promise<RenderResult | 'nothing'> =>
  firstOf(renderEngine(engineOf(steps)).render(makeRender().snapshot));

describe('a defect of the engine', () => {
  const expectFailure = (rendered: RenderResult | 'nothing'): void => {
    expect(rendered).toMatchObject({
      ok: false,
      failure: { phase: 'template', problems: [{ severity: 'error', reason: 'InternalError' }] },
    });
    expect(JSON.stringify(rendered)).toMatch(/TypeError at .*render-engine\.test\.ts/);
    expect(JSON.stringify(rendered)).not.toContain('password');
  };

  const fail = (): RenderResult => {
    throw new TypeError('password 1234');
  };

  it('S42: is a failed render, and repeats nothing of what it was about', async () => {
    expectFailure(
      await result(function* () {
        const never = fail();
        yield;
        return never;
      }),
    );
  });

  it('S42: also in a later turn', async () => {
    expectFailure(
      await result(function* () {
        const end = performance.now() + 30;
        while (performance.now() < end) yield;
        throw new TypeError('password 1234');
      }),
    );
  });
});
