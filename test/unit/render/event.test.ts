import { describe, expect, test } from 'vitest';
import { objectRef } from '../../../src/snapshot/objects.ts';
import {
  HEAD,
  configMap,
  engineOf,
  failureOf,
  renderOf,
  snapshotOf,
} from '../../support/templates.ts';

const OBJECTS = [configMap('web', { color: 'dark\nblue' })];
const told = (details: string) => {
  const main = `${HEAD}{% set web = resources.configmaps.get("shop", "web") %}
{{ event(web, ${details}) }}
`;
  return renderOf(engineOf({ main }), snapshotOf(OBJECTS)).problems;
};

describe('event()', () => {
  test('tells a problem of an object, and the render goes on', () => {
    expect(
      told('{ reason: "OddColor", message: "blue it is", field: "data.color" }'),
    ).toStrictEqual([
      {
        ...{ severity: 'warning', reason: 'OddColor', message: 'blue it is' },
        ...{ nextStep: 'Correct the object.', field: 'data.color' },
        object: objectRef(configMap('web', {})),
        place: { source: 'main', line: 4, column: 4 },
      },
    ]);
  });

  test('tells the same only once', () => {
    const twice = '{ reason: "A", message: "b" }) }}{{ event(web, { reason: "A", message: "b" }';
    expect(told(twice)).toHaveLength(1);
    const two = '{ reason: "A", message: "b" }) }}{{ event(web, { reason: "A", message: "c" }';
    expect(told(two)).toHaveLength(2);
  });

  test('takes linear time for many in one cell', () => {
    const each = '{{ event(one, { reason: "Bad", message: "x" }) }}';
    const main = `${HEAD}{% for one in resources.configmaps.list() %}${each}${each}{% endfor %}\n`;
    const objects = Array.from({ length: 4_000 }, (_, index) => configMap(`c${index}`, {}));
    const startedAt = performance.now();
    const { problems } = renderOf(engineOf({ main }), snapshotOf(objects));
    expect(performance.now() - startedAt).toBeLessThan(3_000);
    expect(problems).toHaveLength(4_000);
  });

  test('puts data on one line of limited length', () => {
    const message = '"it is " ~ web.data.color';
    const [first] = told(`{ reason: "OddColor", severity: "error", message: ${message} }`);
    expect(first).toMatchObject({ severity: 'error', message: 'it is dark?blue' });
    const long = '(range(500) | join(","))';
    expect(told(`{ reason: "Long", message: ${long} }`)[0]?.message).toHaveLength(500);
  });

  test.each([
    ['"web", { reason: "A", message: "b" }', 'takes an object of Kubernetes first'],
    ['web, { reason: web.data.color, message: "b" }', 'is no literal word'],
    ['web, { reason: "no word", message: "b" }', 'is no literal word'],
    ['web, { reason: "A", message: 1 }', 'is a number, not a string'],
    ['web, { reason: "A", message: "b", severity: "fatal" }', 'neither "warning" nor "error"'],
    ['web, { reason: "A", mesage: "b" }', 'did you mean "message"?'],
  ])('refuses %s', (words, message) => {
    const template = `{% set web = resources.configmaps.get("shop", "web") %}{{ event(${words}) }}`;
    expect(failureOf(template, OBJECTS).message).toContain(message);
  });
});
