import { describe, expect, it } from 'vitest';
import type { ValidationTestSpec } from '../../../src/render/config/spec.ts';
import {
  type Judgement,
  runTest,
  type TestReport,
  testNames,
} from '../../../src/render/validation/run-tests.ts';
import { compileConfig, type CompileSettings } from '../../../src/streams/compile-config.ts';
import { configMap, HEAD, templateConfig, type TemplateParts } from '../../support/templates.ts';

type Tests = Readonly<Record<string, ValidationTestSpec>>;
type Assertion = NonNullable<ValidationTestSpec['assertions']>[number];

const SETTINGS: CompileSettings = {
  haproxyVersion: '3.2.4',
  routing: { ingressClass: { name: 'haptic', controller: 'c' }, standalone: true },
};

const PARTS: TemplateParts = {
  main: `${HEAD}{% for one in resources.configmaps.list() %}# {{ one.metadata.name | comment }} {{ one.data.color | comment }}\n{% endfor %}# {{ extraContext.size | comment }}\n`,
  maps: {
    'colors.map':
      '{% for one in resources.configmaps.list() %}{{ map_entry(one.metadata.name, one.data.color) }}{% endfor %}',
  },
  extraContext: { size: 'small', nested: { kept: 'yes' } },
};

const FIXTURES = new Map([
  ['configmaps', [configMap('b', { color: 'blue' }), configMap('a', { color: 'red' })]],
]);

const NO_WAY: Assertion = { type: 'contains', target: 'rendering_error', pattern: 'no way' };

const configOf = (tests: Tests, parts: TemplateParts = PARTS) => ({
  ...templateConfig(parts),
  validationTests: new Map(Object.entries(tests)),
});

const run = (
  name: string,
  tests: Tests,
  {
    parts = PARTS,
    judgement = { result: 'passed' },
  }: { parts?: TemplateParts; judgement?: Judgement } = {},
): Promise<TestReport> =>
  runTest(name, {
    config: configOf(tests, parts),
    haproxyVersion: '3.2.4',
    compile: (config) => compileConfig(config, SETTINGS),
    check: () => Promise.resolve(judgement),
  });

const assertion = async (
  one: Assertion,
  options: Parameters<typeof run>[2] = {},
): Promise<string> => {
  const { outcome, reasons } = await run(
    't',
    { t: { fixtures: FIXTURES, assertions: [one] } },
    options,
  );
  return reasons.length === 0 ? outcome : reasons.map(({ problem }) => problem.message).join(' / ');
};

describe('runTest', () => {
  it.each<[Assertion, string]>([
    [{ type: 'contains', pattern: '# a (red|green)' }, 'passed'],
    [{ type: 'contains', pattern: 'purple' }, 'contains: haproxy.cfg does not match "purple"'],
    [{ type: 'contains' }, 'the assertion lacks pattern'],
    [{ type: 'contains', pattern: '(' }, 'not a regular expression in RE2 syntax'],
    [{ type: 'not_contains', pattern: 'purple' }, 'passed'],
    [{ type: 'not_contains', pattern: 'blue' }, 'matches "blue" in line 4'],
    [{ type: 'match_count', pattern: '(?m)^# ', expected: '3' }, 'passed'],
    [{ type: 'match_count', pattern: '(?m)^# ', expected: '2' }, '3 times, not 2'],
    [{ type: 'match_order', patterns: ['red', 'blue'] }, 'passed'],
    [{ type: 'match_order', patterns: ['blue', 'red'] }, 'does not match "red" behind "blue"'],
    [{ type: 'equals', target: 'map:colors.map', expected: 'a red\nb blue' }, 'passed'],
    [{ type: 'equals', target: 'map:colors.map', expected: 'a red\nb green' }, 'first in line 2'],
    [
      { type: 'equals', target: 'map:colour.map', expected: '' },
      'the nearest known name is map:colors.map',
    ],
    [{ type: 'contains', target: 'maps/colors.map', pattern: 'a red' }, 'passed'],
    [
      {
        type: 'jsonpath',
        target: 'plan',
        jsonpath: '{.maps[0].path}',
        expected: 'maps/colors.map',
      },
      'passed',
    ],
    [
      { type: 'jsonpath', target: 'plan', jsonpath: '{.maps[*].entries[0][0]}', expected: 'a' },
      'passed',
    ],
    [{ type: 'jsonpath', target: 'plan', jsonpath: '$.maps[7]' }, 'has nothing at'],
    [{ type: 'jsonpath', target: 'plan', jsonpath: '{..x}' }, 'is not a path'],
    [{ type: 'jsonpath', jsonpath: '{.a}' }, 'haproxy.cfg is no JSON'],
    [{ type: 'deterministic' }, 'passed'],
    [{ type: 'haproxy_valid' }, 'passed'],
    [{ description: 'x' }, 'has no type'],
  ])('looks at %j', async (one, expected) => {
    expect(await assertion(one)).toContain(expected);
  });

  it.each<[Assertion, string | undefined, string | undefined]>([
    [
      { type: 'contains', pattern: 'blue green' },
      'a match of /blue green/',
      'most like it line 4: # b blue',
    ],
    [{ type: 'contains', pattern: 'purple' }, 'a match of /purple/', 'nothing like it in 5 lines'],
    [
      { type: 'contains', target: 'rendering_error', pattern: 'x' },
      'a match of /x/',
      'nothing, it is empty',
    ],
    [{ type: 'not_contains', pattern: 'blue' }, 'no match of /blue/', 'line 4: # b blue'],
    [
      { type: 'match_count', pattern: '(?m)^#', expected: '2' },
      'matches of /(?m)^#/: 2',
      'line 3: # a red\nline 4: # b blue\nline 5: # small',
    ],
    [
      { type: 'match_count', pattern: '(?m)^[# ]', expected: '2' },
      'matches of /(?m)^[# ]/: 2',
      'line 2:     default-path origin /etc/haproxy\nline 3: # a red\nline 4: # b blue\nand 1 more',
    ],
    [
      { type: 'match_order', patterns: ['blue', 'red'] },
      'a match of /red/ behind line 4, which has /blue/',
      'only before: line 3: # a red',
    ],
    [{ type: 'match_order', patterns: ['sma', 'smaller'] }, 'behind', 'nothing like it in 5 lines'],
    [
      { type: 'equals', target: 'map:colors.map', expected: 'a red\nb green' },
      'line 2: b green',
      'line 2: b blue',
    ],
    [
      { type: 'equals', target: 'map:colors.map', expected: 'a red' },
      'line 2: the end of the text',
      'line 2: b blue',
    ],
    [
      { type: 'jsonpath', target: 'plan', jsonpath: '{.maps[0].path}', expected: 'x' },
      'x at {.maps[0].path}',
      '"maps/colors.map"',
    ],
    [
      { type: 'jsonpath', target: 'plan', jsonpath: '{.maps[0].name}' },
      'anything at {.maps[0].name}',
      'the members path, ordered, text, size, entries',
    ],
    [{ type: 'jsonpath', target: 'plan', jsonpath: '{.maps[4]}' }, 'anything', 'a list of 1 item'],
    [{ type: 'contains', target: 'map:x', pattern: 'x' }, undefined, undefined],
  ])('quotes what it expected and what it found for %j', async (one, expected, found) => {
    const { reasons } = await run('t', { t: { fixtures: FIXTURES, assertions: [one] } });
    if (expected === undefined) expect(reasons[0]).not.toHaveProperty('expected');
    else expect(reasons[0]?.expected).toContain(expected);
    expect(reasons[0]?.found).toBe(found);
  });

  it('quotes a long line around what is looked for', async () => {
    const parts = { main: `${HEAD}# ${'a'.repeat(500)} here ${'b'.repeat(500)}\n` };
    const assertions: Assertion[] = [{ type: 'not_contains', pattern: 'here' }];
    const { reasons } = await run('t', { t: { assertions } }, { parts });
    expect(reasons[0]?.found).toMatch(/^line 3: …a+ here b+…$/);
    expect(reasons[0]?.found?.length).toBeLessThan(180);
  });

  it('quotes nothing of a file with keys', async () => {
    const pem = '-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n';
    const parts = {
      certificates: { 'own.pem': '{{ resources.configmaps.get("shop", "a").data.pem | pem }}' },
    };
    const fixtures = new Map([['configmaps', [configMap('a', { pem })]]]);
    for (const target of ['cert:own.pem', 'certs/own.pem']) {
      const assertions: Assertion[] = [
        { type: 'contains', target, pattern: 'PRIVATE' },
        { type: 'not_contains', target, pattern: 'Q.JD' },
        { type: 'equals', target, expected: 'x' },
      ];
      const { reasons } = await run('t', { t: { fixtures, assertions } }, { parts });
      expect(reasons.map(({ found }) => found)).toStrictEqual([undefined, undefined, undefined]);
      expect(reasons.map(({ problem }) => problem.message).join(' ')).not.toContain('QUJD');
    }
  });

  it('says where a template failed, and for which object', async () => {
    const main = `${HEAD}{% cells one in resources.configmaps.list() key one.metadata.name %}\n# {{ one.data.missing | comment }}\n{% endcells %}`;
    const { reasons } = await run('t', { t: { fixtures: FIXTURES } }, { parts: { main } });
    expect(reasons[0]?.problem).toMatchObject({
      field: 'spec.validationTests.t.fixtures',
      place: { source: 'main', line: 4 },
      object: { kind: 'ConfigMap', name: 'a' },
    });
  });

  it('keeps place and object of what HAProxy refuses', async () => {
    const place = { source: 'main', line: 7 };
    const object = { apiVersion: 'v1', kind: 'Service', namespace: 'a', name: 'b', uid: 'u' };
    const refusal = { severity: 'error', reason: 'R', message: 'm', nextStep: 'n' } as const;
    const tests: Tests = { t: { assertions: [{ type: 'haproxy_valid' }] } };
    const { reasons } = await run('t', tests, {
      judgement: { result: 'refused', problems: [{ ...refusal, place, object }] },
    });
    expect(reasons[0]?.problem).toMatchObject({ place, object, nextStep: 'n' });
  });

  it('renders fixtures as objects, with extraContext merged member by member', async () => {
    const parts = {
      ...PARTS,
      main: `${HEAD}# {{ extraContext.nested.kept | comment }} {{ extraContext.nested.more | comment }}\n`,
    };
    const extraContext = { nested: { more: 'more' } };
    const assertions = [{ type: 'contains', pattern: '# yes more' }] as const;
    expect(await run('t', { t: { extraContext, assertions } }, { parts })).toStrictEqual({
      name: 't',
      outcome: 'passed',
      reasons: [],
    });
  });

  it('adds what all tests share, and lets a test replace a shared object', async () => {
    const tests: Tests = {
      _global: {
        fixtures: FIXTURES,
        assertions: [{ type: 'contains', pattern: '# b blue' }],
      },
      t: {
        fixtures: new Map([['configmaps', [configMap('a', { color: 'white' })]]]),
        assertions: [{ type: 'match_order', patterns: ['a white', 'b blue'] }],
      },
    };
    expect(testNames(configOf(tests))).toStrictEqual(['t']);
    expect((await run('t', tests)).reasons).toStrictEqual([]);
  });

  it('fails a test whose render fails, unless the test is about that', async () => {
    const parts = { main: `${HEAD}{{ fail("no way") }}` };
    expect(await assertion({ type: 'contains', pattern: 'x' }, { parts })).toContain(
      'cannot be rendered: no way',
    );
    const about = { type: 'contains', target: 'rendering_error', pattern: 'no way' } as const;
    expect(await assertion(about, { parts })).toBe('passed');
    expect(await assertion({ ...about, pattern: 'some way' }, { parts })).toContain(
      'does not match',
    );
  });

  it.each<[readonly Assertion[], readonly string[]]>([
    [
      [{ type: 'haproxy_valid' }],
      ['cannot be rendered: no way', 'haproxy_valid: nothing was rendered'],
    ],
    [
      [NO_WAY, { type: 'haproxy_valid', description: 'loads' }],
      ['haproxy_valid (loads): nothing was rendered'],
    ],
    [[NO_WAY, { type: 'deterministic' }], ['deterministic: nothing was rendered']],
    [
      [{ type: 'not_contains', target: 'rendering_error', pattern: 'some way' }],
      ['cannot be rendered: no way'],
    ],
    [
      [{ type: 'match_count', target: 'rendering_error', pattern: 'some way', expected: '0' }],
      ['cannot be rendered: no way'],
    ],
    [
      [{ type: 'match_order', target: 'rendering_error', patterns: [] }],
      ['cannot be rendered: no way'],
    ],
    [
      [{ type: 'contains', target: 'rendering_error', pattern: '(' }],
      ['not a regular expression in RE2 syntax'],
    ],
    [
      [{ type: 'equals', target: 'rendering_error', expected: 'some way' }],
      ['equals: rendering_error differs'],
    ],
    [[{ type: 'match_count', target: 'rendering_error', pattern: 'way', expected: '1' }], []],
    [[{ type: 'match_order', target: 'rendering_error', patterns: ['no', 'way'] }], []],
    [[{ type: 'not_contains', target: 'rendering_error', pattern: '^$' }], []],
  ])('takes a failed render for what %j expect of it', async (assertions, expected) => {
    const parts = { main: `${HEAD}{{ fail("no way") }}` };
    const { outcome, reasons } = await run('t', { t: { assertions } }, { parts });
    expect(outcome).toBe(expected.length === 0 ? 'passed' : 'failed');
    expect(reasons).toHaveLength(expected.length);
    for (const [index, part] of expected.entries()) {
      expect(reasons[index]?.problem.message).toContain(part);
    }
  });

  it('passes on what HAProxy says, and does not call a test failed that HAProxy could not judge', async () => {
    const refusal = {
      severity: 'error',
      reason: 'R',
      message: 'line 3 is wrong.',
      nextStep: 'Mend it.',
    } as const;
    const refused = await assertion(
      { type: 'haproxy_valid', description: 'it loads' },
      { judgement: { result: 'refused', problems: [refusal] } },
    );
    expect(refused).toBe('Test "t": haproxy_valid (it loads): line 3 is wrong.');
    const judgement = { result: 'inconclusive', cause: 'no memory' } as const;
    const tests: Tests = { t: { assertions: [{ type: 'haproxy_valid' }] } };
    const unjudged = await run('t', tests, { judgement });
    expect(unjudged).toMatchObject({
      outcome: 'inconclusive',
      reasons: [{ problem: { reason: 'ConfigNotJudged' } }],
    });
    const also: Tests = {
      t: { assertions: [{ type: 'haproxy_valid' }, { type: 'contains', pattern: 'x!' }] },
    };
    expect((await run('t', also, { judgement })).outcome).toBe('failed');
  });

  it('names the assertion by its path and title', async () => {
    const report = await run('a b', {
      'a b': { assertions: [{ type: 'contains', pattern: 'x!', description: 'has x' }] },
    });
    expect(report.reasons[0]?.problem).toMatchObject({
      reason: 'ValidationTestFailed',
      field: 'spec.validationTests["a b"].assertions[0]',
      message: 'Test "a b": contains (has x): haproxy.cfg does not match "x!".',
    });
  });

  it('refuses fixtures of what is not watched, and what is no object', async () => {
    const fixtures = new Map([
      ['configmap', []],
      ['services', [{ kind: 'Service', metadata: { name: 'x' } }]],
    ]);
    const { outcome, reasons } = await run('t', { t: { fixtures } });
    expect(outcome).toBe('failed');
    expect(reasons.map(({ problem }) => [problem.field, problem.message])).toStrictEqual([
      [
        'spec.validationTests.t.fixtures.configmap',
        'Test "t": configmap is not watched; the nearest known name is configmaps.',
      ],
      [
        'spec.validationTests.t.fixtures.services[0]',
        'Test "t": services[0] lacks apiVersion, kind or metadata.name.',
      ],
    ]);
  });

  it('skips a test for a newer HAProxy, or for a resource that is not watched', async () => {
    const never: Assertion = { type: 'contains', pattern: 'never' };
    const outcomeOf = async (test: ValidationTestSpec) =>
      (await run('t', { t: { ...test, assertions: [never] } })).outcome;
    expect(await outcomeOf({ minHAProxyVersion: '3.4' })).toBe('skipped');
    expect(await outcomeOf({ minHAProxyVersion: '3.2.5' })).toBe('skipped');
    expect(await outcomeOf({ minHAProxyVersion: '3.2' })).toBe('failed');
    expect(await outcomeOf({ requires: ['gateways'] })).toBe('skipped');
    expect(await outcomeOf({ requires: ['services'] })).toBe('failed');
  });

  it('takes linear time for any pattern', async () => {
    const text = `# ${'a'.repeat(20_000)}!`;
    const parts = { main: `${HEAD}${text}\n` };
    const startedAt = performance.now();
    expect(await assertion({ type: 'contains', pattern: '(a+)+$' }, { parts })).toContain(
      'does not match',
    );
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });

  it.each([
    ['many lines', `# ${'a'.repeat(30)}\n`.repeat(8_000)],
    ['one long line', `# ${'a'.repeat(300_000)}\n`],
  ])('quotes matches at everything of %s in linear time', async (_what, text) => {
    const parts = { main: `${HEAD}${text}` };
    const startedAt = performance.now();
    await assertion({ type: 'not_contains', pattern: '.' }, { parts });
    expect(performance.now() - startedAt).toBeLessThan(3_000);
  });

  it('looks up own members only', async () => {
    expect(
      await assertion({ type: 'jsonpath', target: 'plan', jsonpath: '{.constructor}' }),
    ).toContain('has nothing at');
  });
});
