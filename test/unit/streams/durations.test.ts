import { describe, expect, it } from 'vitest';
import { parseDuration } from '../../../src/render/config/duration.ts';
import { nearestName } from '../../../src/render/nearest-name.ts';

describe('parseDuration', () => {
  it.each([
    ['0', 0],
    ['0s', 0],
    ['100ms', 100],
    ['5s', 5_000],
    ['1m30s', 90_000],
    ['1.5h', 5_400_000],
    ['1.1s', 1_100],
    ['.5s', 500],
    ['1500us', 2],
    ['1µs', 1],
    ['1h0m0.5s', 3_600_500],
  ])('reads %s as %d ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each([
    '',
    '5',
    '-5s',
    '+5s',
    '5 s',
    '5S',
    '5d',
    's',
    '1s ',
    '1.2.3s',
    '99999h',
    'constructor',
  ])('refuses %j', (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });
});

describe('nearestName', () => {
  const names = ['watchedResources', 'watchedResourcesIgnoreFields', 'maps', 'files'];

  it.each([
    ['watchedResouces', 'watchedResources'],
    ['watchedresources', 'watchedResources'],
    ['wtachedResources', 'watchedResources'],
    ['map', 'maps'],
    ['fils', 'files'],
  ])('takes %s for %s', (name, nearest) => {
    expect(nearestName(name, names)).toBe(nearest);
  });

  it('takes nothing for what is like none of them', () => {
    expect(nearestName('constructor', names)).toBeUndefined();
    expect(nearestName('x'.repeat(100_000), names)).toBeUndefined();
    expect(nearestName('maps', [])).toBeUndefined();
  });
});
