/** Configurations vetted by the real process, over real templates and the real HAProxy. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { delay, lastValueFrom, map, NEVER, of, timer } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chunkText } from '../../../src/cells/chunk.ts';
import { vetProgram } from '../../../src/cli/programs.ts';
import { sha256 } from '../../../src/digest.ts';
import { createChecker, type HaproxyChecker } from '../../../src/gate/checker.ts';
import type { ResourceSource } from '../../../src/ports.ts';
import type { Library } from '../../../src/render/config/layers.ts';
import { parseConfig } from '../../../src/render/config/parse-config.ts';
import type { TemplateConfig } from '../../../src/render/config/template-config.ts';
import { metadataOf } from '../../../src/snapshot/content.ts';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import { loadLibraries } from '../../../src/streams/libraries.ts';
import type { Findings } from '../../../src/vetting/messages.ts';
import { vetConfig, type VetOptions } from '../../../src/vetting/vet-config.ts';
import { haproxyVersions } from '../../support/haproxy.ts';
import { ingress, service } from '../../support/objects.ts';
import { LIBRARIES } from '../../support/rendered.ts';
import { kubeObject } from '../../support/watched.ts';

let libraries: readonly Library[] = [];
let checker: HaproxyChecker;
const scratch = mkdtempSync(join(tmpdir(), 'haptic-vetting-'));

beforeAll(async () => {
  const loaded = await loadLibraries(LIBRARIES);
  if (!loaded.ok) throw new Error('the libraries cannot be read');
  ({ libraries } = loaded);
  const [haproxy] = haproxyVersions();
  checker = createChecker({ binary: haproxy?.binary ?? '', dir: scratch });
});

afterAll(async () => {
  await checker.close();
  rmSync(scratch, { recursive: true, force: true });
});

const configOf = (spec: unknown): TemplateConfig => {
  const members = { kind: 'HAProxyTemplateConfig', spec };
  const parsed = parseConfig(kubeObject('haptic/main', members), { libraries, digest: sha256 });
  if (!parsed.ok) throw new Error(parsed.problems.map(({ message }) => message).join('\n'));
  return parsed.config;
};

const OBJECTS: Readonly<Record<string, readonly KubeObject[]>> = {
  ingresses: [ingress('web', { rules: [['web.example.com', '/', 'web:80']] })],
  services: [service('web')],
};

const sourceOf = (objects: Readonly<Record<string, readonly KubeObject[]>>): ResourceSource => ({
  watch: ({ name }) => of({ type: 'Replaced', objects: objects[name] ?? [] }),
  problems$: NEVER,
});

const NOTHING: Findings = {
  problems: [{ severity: 'error', reason: 'Nothing', message: 'no findings', nextStep: '' }],
  mayPass: false,
};

const vetted = (spec: unknown, options: Partial<VetOptions> = {}): Promise<Findings> =>
  lastValueFrom(
    vetConfig(configOf(spec), {
      program: vetProgram(),
      resources: sourceOf(OBJECTS),
      check: (render) => checker.check(render),
      settings: {
        haproxyVersion: '3.0.11',
        routing: { ingressClass: { name: 'haptic', controller: 'x/y' }, standalone: true },
      },
      ...options,
    }),
    { defaultValue: NOTHING },
  );

/** A hook of the base library whose template this is. */
const hook = (template: string) => ({ templateSnippets: { 'global-500-own': { template } } });

const reasons = ({ problems }: Findings): readonly string[] => problems.map(({ reason }) => reason);

const LOOP =
  '{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% endfor %}{% endfor %}{% endfor %}';

describe('vetConfig', () => {
  it('passes a configuration that renders the objects of the cluster to what HAProxy accepts (S58, S63)', async () => {
    let checks = 0;
    const check: VetOptions['check'] = (render) => {
      checks += 1;
      expect([...render.files.keys()]).toContain('maps/hosts.map');
      return checker.check(render);
    };
    expect(await vetted({}, { check })).toStrictEqual({ problems: [], mayPass: true });
    expect(await vetted({}, { check })).toStrictEqual({ problems: [], mayPass: true });
    expect(checks).toBe(2);
  });

  it('gets the content of what the templates need on demand, and of nothing else', async () => {
    const got: string[] = [];
    const secrets = ['default/named', 'default/other'].map((key) => kubeObject(key));
    const resources: ResourceSource = {
      ...sourceOf({ ...OBJECTS, secrets: secrets.map(metadataOf) }),
      get: (_, key) => {
        got.push(key);
        return of({ type: 'Found', object: kubeObject(key, { data: { x: 'from-the-secret' } }) });
      },
    };
    const template =
      '    # {{ resources.secrets.get("default", "named").data.x | comment }}\n    # {{ resources.secrets.get("default", "absent") is defined }}';
    let text = '';
    const check: VetOptions['check'] = (render) => {
      text = [...render.files.values()].map((file) => chunkText(file.text)).join('');
      return checker.check(render);
    };
    const spec = { ...hook(template), watchedResources: { secrets: { store: 'on-demand' } } };
    expect(await vetted(spec, { resources, check })).toStrictEqual({ problems: [], mayPass: true });
    expect(text).toContain('from-the-secret');
    expect(got).toEqual(['default/named']);
  });

  it('refuses for good what does not compile, without a look at the cluster', async () => {
    const resources: ResourceSource = { watch: () => NEVER, problems$: NEVER };
    const findings = await vetted(hook('{{ nothing }}'), { resources });
    expect(findings.mayPass).toBe(false);
    expect(findings.problems[0]).toMatchObject({ place: { line: 1 } });
  });

  it('refuses what HAProxy refuses, with the template line and the object it comes from', async () => {
    const template =
      '{% cells one in resources.ingresses.list() key one.metadata.name %}\n    no-such-directive\n{% endcells %}';
    const findings = await vetted(hook(template));
    expect(findings.mayPass).toBe(true);
    expect(findings.problems[0]).toMatchObject({
      reason: 'RefusedByHAProxy',
      place: {
        source: 'HAProxyTemplateConfig haptic/main: templateSnippets.global-500-own.template',
        line: 2,
      },
    });
    expect(findings.problems[0]?.message).toContain('no-such-directive');
  });

  it('refuses what cannot be rendered, as something that other objects may mend', async () => {
    const findings = await vetted(
      hook('{{ resources.ingresses.get("default", "web").spec.nothing }}'),
    );
    expect(findings.mayPass).toBe(true);
    expect(findings.problems[0]?.message).toContain('has no member "nothing"');
  });

  it('ends templates that never end or take all memory there is, and nothing else (G13)', async () => {
    const growing = LOOP.replace('{% endfor %}', `# ${'x'.repeat(2_000)}\n{% endfor %}`);
    const [slow, large, good] = await Promise.all([
      vetted(hook(LOOP), { limits: { phaseMs: 10_000 } }),
      vetted(hook(growing), { limits: { heapMb: 96 } }),
      vetted({}),
    ]);
    expect(slow).toMatchObject({
      mayPass: true,
      problems: [
        {
          reason: 'ConfigTooSlow',
          message: 'Rendering the objects of the cluster took longer than 10 s and was ended.',
        },
      ],
    });
    expect(large).toMatchObject({
      mayPass: true,
      problems: [
        {
          reason: 'ConfigTooLarge',
          message:
            'Rendering the objects of the cluster needed more than 96 MiB of memory and was ended.',
        },
      ],
    });
    expect(good.problems).toStrictEqual([]);
  });

  it('ends a template that calls itself', async () => {
    const template = '{% macro down(n) %}{{ down(n + 1) }}{% endmacro %}{{ down(0) }}';
    const findings = await vetted(hook(template));
    expect(findings.problems[0]?.message).toContain('nest deeper than 100 levels');
  });

  it('tells a process that does not run', async () => {
    const findings = await vetted({}, { program: join(scratch, 'missing.js') });
    expect(findings.mayPass).toBe(true);
    expect(findings.problems[0]).toMatchObject({ reason: 'ConfigNotVetted' });
    expect(findings.problems[0]?.message).toContain('Cannot find module');
  });

  it('tells which objects cannot be listed', async () => {
    const resources: ResourceSource = {
      problems$: NEVER,
      watch: (resource) =>
        resource.name === 'secrets' ? NEVER : sourceOf(OBJECTS).watch(resource),
    };
    const findings = await vetted({}, { resources, limits: { listMs: 500 } });
    expect(findings.mayPass).toBe(true);
    expect(findings.problems[0]).toMatchObject({
      reason: 'ObjectsNotListed',
      message:
        'The objects of watchedResources.secrets (secrets in v1) could not be listed within 0.5 s.',
    });
  });

  it('tells at once what a source says cannot be listed', async () => {
    const error = { severity: 'error', reason: 'WatchForbidden', nextStep: 'Allow it.' } as const;
    const errors = ['services', 'secrets'].map((message) => ({ ...error, message }));
    const warning = { ...error, severity: 'warning', message: 'ingresses' } as const;
    const resources: ResourceSource = {
      problems$: timer(10).pipe(map(() => [warning, ...errors])),
      watch: () => NEVER,
    };
    const findings = await vetted({}, { resources });
    expect(findings).toStrictEqual({ problems: errors, mayPass: true });
  });

  it('waits when a source says only that something fails for now', async () => {
    const problem = { reason: 'WatchFailing', message: 'secrets', nextStep: '' } as const;
    const resources: ResourceSource = {
      problems$: of([{ ...problem, severity: 'warning' }]),
      watch: (resource) => sourceOf(OBJECTS).watch(resource).pipe(delay(50)),
    };
    expect(reasons(await vetted({}, { resources }))).toStrictEqual([]);
  });

  it('asks HAProxy again when it could not judge, and gives up in the end', async () => {
    let asked = 0;
    const check: VetOptions['check'] = ({ plan }) => {
      asked += 1;
      const verdict = { result: 'inconclusive', cause: `no memory (${String(asked)})` } as const;
      return asked < 3
        ? of({ planId: plan.id, durationMs: 1, verdict })
        : of({ planId: plan.id, durationMs: 1, verdict: { result: 'passed' } });
    };
    expect(reasons(await vetted({}, { check, limits: { recheckMs: 1 } }))).toStrictEqual([]);
    expect(asked).toBe(3);
    asked = -100;
    const never = await vetted({}, { check, limits: { recheckMs: 1 } });
    expect(never).toMatchObject({ mayPass: true, problems: [{ reason: 'ConfigNotJudged' }] });
    expect(asked).toBe(-96);
  });

  it('runs the tests that come with the configuration, by HAProxy too, and refuses for good when one fails', async () => {
    const fixtures = {
      ingresses: [ingress('shop', { rules: [['shop.example.com', '/', 'shop:80']] })],
      services: [service('shop')],
    };
    const spec = {
      validationTests: {
        good: {
          fixtures,
          assertions: [
            { type: 'haproxy_valid' },
            { type: 'contains', target: 'map:hosts.map', pattern: 'shop\\.example\\.com' },
            { type: 'deterministic' },
          ],
        },
        bad: {
          fixtures,
          assertions: [{ type: 'contains', target: 'map:hosts.map', pattern: 'web\\.example' }],
        },
      },
    };
    const findings = await vetted(spec);
    expect(findings.mayPass).toBe(false);
    expect(findings.problems.map(({ field, message }) => [field, message])).toStrictEqual([
      [
        'spec.validationTests.bad.assertions[0]',
        'Test "bad": contains: map:hosts.map does not match "web\\\\.example".',
      ],
    ]);
    const { bad, ...others } = spec.validationTests;
    expect(bad.assertions).toHaveLength(1);
    expect(await vetted({ validationTests: others })).toStrictEqual({
      problems: [],
      mayPass: true,
    });
  });

  it('runs tests by the same rules in a cluster and where none is: fixtures need no IngressClass', async () => {
    const fixtures = {
      ingresses: [ingress('shop', { rules: [['shop.example.com', '/', 'shop:80']] })],
      services: [service('shop')],
    };
    const assertions = [{ type: 'contains', target: 'map:hosts.map', pattern: 'shop\\.example' }];
    const ingressClass = { name: 'haptic', controller: 'x/y' };
    for (const standalone of [true, false]) {
      const settings = { haproxyVersion: '3.0.11', routing: { ingressClass, standalone } };
      const findings = await vetted(
        { validationTests: { t: { fixtures, assertions } } },
        { settings },
      );
      expect(findings.problems).toStrictEqual([]);
    }
  });

  it('names the test that does not end', async () => {
    const spec = {
      templateSnippets: {
        'global-500-own': { template: `{% if extraContext.loops %}${LOOP}{% endif %}` },
      },
      templatingSettings: { extraContext: { loops: false } },
      validationTests: { endless: { extraContext: { loops: true } } },
    };
    const findings = await vetted(spec, { limits: { phaseMs: 10_000 } });
    expect(findings.problems[0]?.message).toBe(
      'Running the test "endless" took longer than 10 s and was ended.',
    );
  });
});
