import { describe, expect, it } from 'vitest';
import { classifyLevels, type GateLevel } from '../../../src/gate/levels.ts';
import { renderWith } from '../../support/world.ts';

const base = renderWith({ servers: ['s'] });
const more = renderWith({ servers: ['s', 't'] });
const core = renderWith({ servers: ['s'], routes: ['r'] });
const coreAndMore = renderWith({ servers: ['s', 't'], routes: ['r'] });

const level = (change: Partial<GateLevel> = {}): GateLevel => ({
  epoch: 1,
  phase: 'open',
  target: base,
  accepted: base,
  refused: new Set(),
  servers: undefined,
  ...change,
});
/** After a refusal: everybody goes back to `base`. */
const held = (change: Partial<GateLevel> = {}): GateLevel =>
  level({ phase: 'holding', refused: new Set([core.plan.id]), ...change });

describe('classifyLevels', () => {
  it('the first target waits for nothing, as a reload', () => {
    expect(classifyLevels(undefined, level())).toBe('later');
    expect(classifyLevels(level({ target: undefined }), level())).toBe('later');
  });

  it.each([
    ['now', more],
    ['later', core],
    ['both', coreAndMore],
  ] as const)('G6, G7: a new target goes %s, as its plan says', (pace, target) => {
    expect(classifyLevels(level(), level({ target }))).toBe(pace);
  });

  it('G9: a revert goes at once, though the way back is a reload', () => {
    expect(classifyLevels(level({ target: core }), held())).toBe('now');
  });

  it('G9: a revert without an accepted render goes at once', () => {
    const back = held({ target: undefined, accepted: undefined });
    expect(classifyLevels(level({ target: core, accepted: undefined }), back)).toBe('now');
    expect(classifyLevels(back, { ...back })).toBe('none');
  });

  it('G9: servers flow at once while held', () => {
    expect(classifyLevels(held({ servers: core }), held({ servers: coreAndMore }))).toBe('now');
  });

  it.each([
    ['more', [core.plan.id, more.plan.id]],
    ['other', [more.plan.id]],
    ['fewer', []],
  ])('%s refused plans are another level', (_, refused) => {
    expect(classifyLevels(held(), held({ refused: new Set(refused) }))).toBe('now');
  });

  it('acceptance of what is out goes at once, an equal level not at all', () => {
    expect(classifyLevels(level({ accepted: undefined }), level())).toBe('now');
    expect(classifyLevels(level(), level())).toBe('none');
    expect(classifyLevels(held(), held())).toBe('none');
  });
});
