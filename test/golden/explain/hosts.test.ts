import { describe, expect, test } from 'vitest';
import { Contributors } from '../../../src/render/explain-contributors.ts';
import { objectsOfLine } from '../../../src/render/explain-line.ts';
import { ingress, service, snapshotOf } from '../../support/objects.ts';
import { libraryEngine, renderAll } from '../../support/rendered.ts';

const CLASSES = {
  ...{ name: 'haptic', controller: 'haproxy-haptic.org/controller', withoutObject: true },
};

const OBJECTS = [
  ingress('root', { rules: [['a.example.com', '/', 'web:80']] }),
  ingress('sub', { rules: [['a.example.com', '/sub', 'web:80']] }),
  ingress('exact', { rules: [['a.example.com', '/sub', 'web:80', 'Exact']] }),
  ingress('fallback', {
    rules: [['a.example.com', '/other', 'web:80']],
    defaultBackend: 'last:80',
  }),
  ingress('everything', { defaultBackend: 'web:80' }),
  service('web'),
  service('last'),
];

const namesFor = async (path: string): Promise<Readonly<Record<string, readonly string[]>>> => {
  const render = renderAll(await libraryEngine(), snapshotOf(OBJECTS));
  const contributors = new Contributors(render.snapshot, CLASSES);
  return Object.fromEntries(
    [...render.lines(path)].map((line) => [
      line.text,
      objectsOfLine(line, contributors).map(({ object }) => object.name),
    ]),
  );
};

describe('an entry of a map', () => {
  test('comes from the Ingress whose path it is', async () => {
    expect(await namesFor('maps/path-prefix.map')).toStrictEqual({
      'a.example.com/ default_web_80': ['root'],
      'a.example.com/other/ default_web_80': ['fallback'],
      'a.example.com/sub/ default_web_80': ['sub'],
    });
    expect(await namesFor('maps/path-exact.map')).toStrictEqual({
      'a.example.com/sub default_web_80': ['exact'],
    });
  });

  test('of a default backend comes from the Ingress that has it', async () => {
    expect(await namesFor('maps/host-default.map')).toStrictEqual({
      '* default_web_80': ['everything'],
      'a.example.com default_last_80': ['fallback'],
    });
  });

  test('that stands for a whole host comes from all that claim it', async () => {
    expect(await namesFor('maps/hosts.map')).toStrictEqual({
      'a.example.com a.example.com': ['exact', 'fallback', 'root', 'sub'],
    });
  });
});
