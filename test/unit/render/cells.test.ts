import { describe, expect, test } from 'vitest';
import { PersistentMap } from '../../../src/cells/persistent-map.ts';
import { TestScheduler } from 'rxjs/testing';
import { asyncScheduler, lastValueFrom } from 'rxjs';
import { renderEngine } from '../../../src/streams/render-engine.ts';
import type { Snapshot } from '../../../src/snapshot/snapshot.ts';
import {
  EMPTY_SNAPSHOT,
  HEAD,
  backendModel,
  configMap,
  engineOf,
  renderOf,
  runSteps,
  server,
  snapshotOf,
  textOf,
  withObjects,
  type Routes,
} from '../../support/templates.ts';

const MAIN = `${HEAD}{% cells b in routes.backends %}
{% set settings = resources.configmaps.get("shop", b.name) | default(none) %}
{% set body %}
    # {{ settings.data.x | default("nothing") | comment }}
{% endset %}
{{ backend({ name: b.name, profile: "p", servers: b.servers, body: body }) }}
{% endcells %}
`;

const manyBackends = (count: number): Routes['backends'] =>
  PersistentMap.from(
    Array.from(
      { length: count },
      (_, index) => [`b${index}`, backendModel(`b${index}`, [])] as const,
    ),
  );

const snapshotAfter = (version: number): Snapshot =>
  Object.assign(Object.create(EMPTY_SNAPSHOT) as Snapshot, { version, changes: [] });

describe('a render', () => {
  test('evaluates the cells of what changed, and shares the rest', () => {
    let backends = manyBackends(500);
    const engine = engineOf({ main: MAIN }, () => ({ hosts: PersistentMap.EMPTY, backends }));
    const before = renderOf(engine, snapshotAfter(1));
    expect(before.cells).toEqual({ evaluated: 501, reused: 0, live: 501, reads: 500 });
    backends = backends.with(new Map([['b7', backendModel('b7', [server('s', '10.0.0.1')])]]));
    const after = renderOf(engine, snapshotAfter(2));
    expect(after.cells).toEqual({ evaluated: 1, reused: 500, live: 501, reads: 500 });
    expect(after.plan.backends.get('b8')).toBe(before.plan.backends.get('b8'));
    expect(after.plan.id).not.toBe(before.plan.id);
  });

  test('evaluates the cells that read a changed object', () => {
    const backends = manyBackends(100);
    const engine = engineOf({ main: MAIN }, () => ({ hosts: PersistentMap.EMPTY, backends }));
    const first = snapshotOf([configMap('other', {})]);
    renderOf(engine, first);
    const second = withObjects(first, [
      configMap('b3', { x: 'here' }),
      configMap('b4', { x: 'too' }),
    ]);
    const made = renderOf(engine, second);
    expect(made.cells.evaluated).toBe(2);
    expect(textOf(made)).toContain('# here\n');
  });

  test('of the same snapshot evaluates nothing', () => {
    const engine = engineOf({ main: MAIN }, () => ({
      hosts: PersistentMap.EMPTY,
      backends: manyBackends(3),
    }));
    const snapshot = snapshotAfter(1);
    const before = renderOf(engine, snapshot);
    const after = renderOf(engine, snapshot);
    expect(after.cells.evaluated).toBe(0);
    expect(after.plan.id).toBe(before.plan.id);
    expect(after.files.get('haproxy.cfg')?.text).toEqual(before.files.get('haproxy.cfg')?.text);
  });

  test('that is cut off keeps the cells it has finished', () => {
    const backends = manyBackends(100);
    const engine = engineOf({ main: MAIN }, () => ({ hosts: PersistentMap.EMPTY, backends }));
    const steps = engine.steps(snapshotAfter(1));
    for (let step = 0; step < 51; step += 1) steps.next();
    const made = renderOf(engine, snapshotAfter(2));
    expect(made.cells.evaluated + made.cells.reused).toBe(101);
    expect(made.cells.reused).toBeGreaterThanOrEqual(50);
  });

  test('that is superseded gives no render', () => {
    const engine = engineOf({ main: MAIN });
    const steps = engine.steps(snapshotAfter(1));
    steps.next();
    renderOf(engine, snapshotAfter(2));
    expect(steps.next()).toMatchObject({ done: true, value: { ok: false } });
  });

  test('forgets the cells and reads of what left', () => {
    let backends = manyBackends(50);
    const engine = engineOf({ main: MAIN }, () => ({ hosts: PersistentMap.EMPTY, backends }));
    renderOf(engine, snapshotAfter(1));
    expect(engine.stats()).toEqual({ cells: 51, reads: 50 });
    backends = PersistentMap.EMPTY;
    renderOf(engine, snapshotAfter(2));
    expect(engine.stats()).toEqual({ cells: 1, reads: 0 });
  });

  test.each(['cut off', 'refused'])(
    'that is %s leaves no cells of what has left by the next one',
    (how) => {
      const routes = { hosts: PersistentMap.EMPTY, backends: manyBackends(0) } as Routes;
      const engine = engineOf({ main: MAIN }, () => routes);
      renderOf(engine, snapshotAfter(1));
      routes.backends = manyBackends(20);
      if (how === 'refused') {
        const bad = backendModel('bad', [server('a b', '10.0.0.1')]);
        routes.backends = routes.backends.with(new Map([['bad', bad]]));
        expect(runSteps(engine, snapshotAfter(2)).ok).toBe(false);
      } else {
        const steps = engine.steps(snapshotAfter(2));
        for (let step = 0; step < 12; step += 1) steps.next();
      }
      expect(engine.stats().cells).toBeGreaterThan(10);
      routes.backends = manyBackends(0);
      renderOf(engine, snapshotAfter(3));
      expect(engine.stats()).toEqual({ cells: 1, reads: 0 });
    },
  );

  describe('of an object that comes back as the very object it was (P6)', () => {
    const READING = `${HEAD}{% cells b in routes.backends %}
{% set body %}
    # {{ (b.servers | first).name | token }} {{ resources.configmaps.get("shop", b.name).data.x | default("none") | comment }}
{% endset %}
{{ backend({ name: b.name, profile: "p", servers: b.servers, body: body }) }}
{% endcells %}
`;
    const good = backendModel('b', [server('s', '10.0.0.1')]);
    const only = (backend: typeof good | undefined): Routes['backends'] =>
      PersistentMap.from(backend === undefined ? [] : [['b', backend]]);
    const started = () => {
      const routes = { hosts: PersistentMap.EMPTY, backends: only(good) } as Routes;
      const engine = engineOf({ main: READING }, () => routes);
      const first = snapshotOf([configMap('b', { x: 'old' })]);
      expect(textOf(renderOf(engine, first))).toContain('# s old\n');
      return { routes, engine, first };
    };

    test('after a version that was refused, says what it reads now', () => {
      const { routes, engine, first } = started();
      routes.backends = only(backendModel('b', [server('a b', '10.0.0.1')]));
      const second = withObjects(first, [configMap('other', {})]);
      expect(runSteps(engine, second).ok).toBe(false);
      routes.backends = only(good);
      const third = withObjects(second, [configMap('other', { x: 1 })]);
      expect(textOf(renderOf(engine, third))).toContain('# s old\n');
      const fourth = withObjects(third, [configMap('b', { x: 'new' })]);
      expect(textOf(renderOf(engine, fourth))).toContain('# s new\n');
    });

    test('after it was away in a render that was cut off, says what it reads now', () => {
      const { routes, engine, first } = started();
      routes.backends = only(undefined);
      const second = withObjects(first, [configMap('other', {})]);
      const steps = engine.steps(second);
      for (let step = 0; step < 3; step += 1) steps.next();
      routes.backends = only(good);
      const third = withObjects(second, [configMap('b', { x: 'new' })]);
      expect(textOf(renderOf(engine, third))).toContain('# s new\n');
    });
  });

  test('looks at what differs from the snapshot before, whatever lies between them', () => {
    const backends = manyBackends(100);
    const engine = engineOf({ main: MAIN }, () => ({ hosts: PersistentMap.EMPTY, backends }));
    const first = snapshotOf([configMap('b1', { x: 'one' }), configMap('b2', { x: 'two' })]);
    renderOf(engine, first);
    // A branch that is tried and given up, and the other one, whose version says that it follows the first.
    const branch = withObjects(withObjects(first, [configMap('b1', { x: 'tried' })]), [
      configMap('b2', { x: 'tried' }),
    ]);
    expect(textOf(renderOf(engine, branch))).toContain('# tried\n');
    const second = withObjects(first, [configMap('b3', { x: 'three' })]);
    const third = withObjects(second, [configMap('b4', { x: 'four' })]);
    const fourth = withObjects(third, [configMap('b5', { x: 'five' })]);
    expect(fourth.version).toBe(branch.version + 1);
    const made = renderOf(engine, fourth);
    expect(made.cells.evaluated).toBe(5);
    const scratch = renderOf(
      engineOf({ main: MAIN }, () => ({ hosts: PersistentMap.EMPTY, backends })),
      fourth,
    );
    expect(textOf(made)).toBe(textOf(scratch));
  });

  test('is refused when a template and a cell make the same file, however it was come by', () => {
    const main = `${HEAD}{% for one in resources.configmaps.list() %}
{{ file("a.txt", one.data.x) }}
{% endfor %}
`;
    const parts = { main, files: { 'a.txt': 'of the template' } };
    const engine = engineOf(parts);
    expect(textOf(renderOf(engine, EMPTY_SNAPSHOT), 'general/a.txt')).toBe('of the template');
    const both = snapshotOf([configMap('b', { x: 'of the cell' })]);
    const refused = { ok: false, failure: { problems: [{ reason: 'DeclaredTwice' }] } };
    expect(runSteps(engine, both)).toMatchObject(refused);
    expect(runSteps(engineOf(parts), both)).toMatchObject(refused);
  });

  test('of the same statuses has the same list of them', () => {
    const main = `${HEAD}{% cells b in routes.backends %}
{{ status(b, { servers: b.servers | length }) }}
{% endcells %}
`;
    let backends = manyBackends(3);
    const engine = engineOf({ main }, () => ({ hosts: PersistentMap.EMPTY, backends }));
    const first = renderOf(engine, snapshotAfter(1));
    const second = renderOf(engine, snapshotAfter(2));
    expect(second.statuses).toBe(first.statuses);
    backends = backends.with(new Map([['b1', backendModel('b1', [server('s', '10.0.0.1')])]]));
    const third = renderOf(engine, snapshotAfter(3));
    expect(third.statuses.map(({ status }) => status)).toEqual([
      { servers: 0 },
      { servers: 1 },
      { servers: 0 },
    ]);
    expect(third.statuses[2]).toBe(first.statuses[2]);
  });

  test('reports every cell that fails, by object, and works again once they are mended', () => {
    let backends = manyBackends(5);
    const bad = (name: string) => backendModel(name, [server('a b', '10.0.0.1')]);
    backends = backends.with(
      new Map([
        ['b1', bad('b1')],
        ['b3', bad('b3')],
      ]),
    );
    const engine = engineOf({ main: MAIN }, () => ({ hosts: PersistentMap.EMPTY, backends }));
    const result = runSteps(engine, snapshotAfter(1));
    expect(result.ok ? [] : result.failure).toMatchObject({
      phase: 'template',
      problems: [
        { object: { name: 'b1' }, place: { source: 'main', line: 8 } },
        { object: { name: 'b3' }, reason: 'ValueRefused' },
      ],
    });
    backends = manyBackends(5);
    expect(renderOf(engine, snapshotAfter(2)).plan.backends.size).toBe(5);
  });
});

describe('provenance', () => {
  test('leads from a line to template, line and object', () => {
    const snippets = { rules: '    # one\n    # two {{ b.object.name | comment }}\n' };
    const main = `${HEAD}
# three
{% if true %}
# four
{% endif %}
{% cells b in routes.backends %}
{% set body %}
    # five
{% include "rules" %}
{% endset %}
{{ backend({ name: b.name, profile: "p", servers: b.servers, body: body }) }}
{% endcells %}
# six {{ 1 }}
# seven`;
    const backends = PersistentMap.from(
      ['x', 'y'].map((name) => [name, backendModel(name, [server('s', '10.0.0.1')])]),
    );
    const engine = engineOf({ main, snippets }, () => ({ hosts: PersistentMap.EMPTY, backends }));
    const made = renderOf(engine, EMPTY_SNAPSHOT);
    const lines = textOf(made).split('\n');
    const where = (text: string, from = 0): string => {
      const found = made.provenance(lines.indexOf(text, from) + 1);
      return `${found?.template ?? ''}:${found?.line ?? 0} ${found?.object?.name ?? '-'}`;
    };
    expect(where('    default-path origin /etc/haproxy')).toBe('main:2 -');
    expect(where('# three')).toBe('main:4 -');
    expect(where('# four')).toBe('main:6 -');
    expect(where('backend x from p')).toBe('main:13 x');
    expect(where('    # five')).toBe('main:10 x');
    expect(where('    # two y')).toBe('snippets/rules:2 y');
    expect(where('    server s 10.0.0.1:8080 weight 1', lines.indexOf('backend y from p'))).toBe(
      'main:13 y',
    );
    expect(where('# six 1')).toBe('main:15 -');
    expect(where('# seven')).toBe('main:16 -');
    expect(made.provenance(lines.length)).toBeUndefined();
    expect(made.provenance(0)).toBeUndefined();
  });
});

describe('the render as a stream', () => {
  test('emits one result and completes', async () => {
    const engine = renderEngine(engineOf({ main: MAIN }));
    const result = await lastValueFrom(engine.render(EMPTY_SNAPSHOT), { defaultValue: undefined });
    expect(result?.ok).toBe(true);
  });

  test('works in slices, and stops between two of them when nobody listens any more', () => {
    const backends = manyBackends(300);
    const core = engineOf({ main: MAIN }, () => ({ hosts: PersistentMap.EMPTY, backends }));
    let now = 0;
    const slow = {
      ...core,
      steps: function* (snapshot: Snapshot) {
        const steps = core.steps(snapshot);
        for (let step = steps.next(); ; step = steps.next()) {
          now += 1;
          if (step.done === true) return step.value;
          yield;
        }
      },
    };
    const turns: (() => void)[] = [];
    const scheduler = new TestScheduler(() => undefined);
    scheduler.now = () => now;
    const schedule = scheduler.schedule.bind(scheduler);
    scheduler.schedule = ((...args: Parameters<typeof schedule>) => {
      turns.push(() => undefined);
      return schedule(...args);
    }) as typeof schedule;
    let results = 0;
    const subscription = renderEngine(slow, scheduler)
      .render(EMPTY_SNAPSHOT)
      .subscribe(() => (results += 1));
    expect([results, now]).toEqual([0, 8]);
    subscription.unsubscribe();
    scheduler.flush();
    expect([results, now]).toEqual([0, 8]);
    renderEngine(slow, scheduler)
      .render(snapshotAfter(2))
      .subscribe(() => (results += 1));
    scheduler.flush();
    expect(results).toBe(1);
    expect(asyncScheduler.now()).toBeGreaterThan(0);
  });
});
