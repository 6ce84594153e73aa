/** What other processes hand over: renders that equal those made here, and outcomes of tests, whatever becomes of the process. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lastValueFrom, NEVER, toArray } from 'rxjs';
import { afterAll, describe, expect, it } from 'vitest';
import { chunkText, EMPTY_CHUNK } from '../../../src/cells/chunk.ts';
import { vetProgram } from '../../../src/cli/programs.ts';
import { sha256 } from '../../../src/digest.ts';
import { serialisePlan } from '../../../src/plan/serialise.ts';
import { parseConfig } from '../../../src/render/config/parse-config.ts';
import type { TemplateConfig } from '../../../src/render/config/template-config.ts';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import { applyBatch, emptySnapshot } from '../../../src/snapshot/apply-batch.ts';
import { REPLACEMENT_KEY } from '../../../src/snapshot/folded-changes.ts';
import { compileConfig, type CompileSettings } from '../../../src/streams/compile-config.ts';
import { loadLibraries } from '../../../src/streams/libraries.ts';
import { renderConfig, type ReceivedResult } from '../../../src/vetting/render-config.ts';
import {
  testConfig,
  type TestConfigOptions,
  type TestEvent,
} from '../../../src/vetting/test-config.ts';
import { ingress, service, slice } from '../../support/objects.ts';
import { LIBRARIES, renderAll } from '../../support/rendered.ts';
import { kubeObject } from '../../support/watched.ts';

const scratch = mkdtempSync(join(tmpdir(), 'hp-'));

afterAll(() => {
  rmSync(scratch, { recursive: true, force: true });
});

const SETTINGS: CompileSettings = {
  haproxyVersion: '3.4.0',
  routing: { ingressClass: { name: 'haptic', controller: 'x/y' }, standalone: true },
};

const configOf = async (spec: object): Promise<TemplateConfig> => {
  const loaded = await loadLibraries(LIBRARIES);
  if (!loaded.ok) throw new Error('the libraries cannot be read');
  const object = kubeObject('default/haptic', { kind: 'HAProxyTemplateConfig', spec });
  const parsed = parseConfig(object, { libraries: loaded.libraries, digest: sha256 });
  if (!parsed.ok) throw new Error(parsed.problems.map(({ message }) => message).join(' '));
  return parsed.config;
};

const NOTHING: ReceivedResult = { ok: false, problems: [] };

describe('renderConfig', () => {
  it('gives the render that this process would make: bytes, plan, provenance and problems', async () => {
    const names = Array.from({ length: 450 }, (_, number) => `web-${String(number)}`);
    const objects = new Map<string, readonly KubeObject[]>([
      ['services', names.map((name) => service(name))],
      ['endpointslices', names.map((name) => slice(name, { endpoints: ['10.0.0.1'] }))],
      [
        'ingresses',
        [...names, 'lost'].map((name) =>
          ingress(name, { rules: [[`${name}.example.com`, '/', `${name}:80`]] }),
        ),
      ],
    ]);
    const config = await configOf({});
    const settings = SETTINGS;
    const received = await lastValueFrom(
      renderConfig(config, { program: vetProgram(), settings, objects }),
      { defaultValue: NOTHING },
    );
    if (!received.ok) throw new Error(JSON.stringify(received.problems));
    const created = compileConfig(config, settings);
    if (!created.ok) throw new Error(JSON.stringify(created.problems));
    const batch = config.watched.map(({ name }) => {
      const event = { type: 'Replaced', objects: objects.get(name) ?? [] } as const;
      return [name, new Map([[REPLACEMENT_KEY, event]])] as const;
    });
    const snapshot = applyBatch(emptySnapshot(config.watched), new Map(batch));
    const own = renderAll(created.engine, snapshot);
    const textsOf = ({ files }: Pick<typeof own, 'files'>) =>
      [...files].map(([path, { kind, text }]) => [path, kind, chunkText(text)]);
    const { render } = received;
    expect(textsOf(render)).toStrictEqual(textsOf(own));
    expect(render.serialisedPlan).toBe(serialisePlan(own.plan));
    expect(render.plan.id).toBe(own.plan.id);
    expect(own.problems.map(({ reason }) => reason)).toStrictEqual(['ServiceNotFound']);
    expect(render.problems).toStrictEqual(own.problems);
    const lines = chunkText(own.files.get('haproxy.cfg')?.text ?? EMPTY_CHUNK).split('\n').length;
    expect(lines).toBeGreaterThan(1_000);
    for (let line = 1; line < lines; line += 7) {
      expect(render.provenance(line)).toStrictEqual(own.provenance(line));
    }
  });

  it('tells what does not compile, and a process that does not run', async () => {
    const settings = SETTINGS;
    const config = await configOf({
      templateSnippets: { 'global-600-x': { template: '{{ nothing }}' } },
    });
    const reasons = async (program: string) => {
      const result$ = renderConfig(config, { program, settings, objects: new Map() });
      const result = await lastValueFrom(result$, { defaultValue: NOTHING });
      return result.ok ? [] : result.problems.map(({ reason }) => reason);
    };
    expect(await reasons(vetProgram())).toStrictEqual(['TemplateError']);
    expect(await reasons(join(scratch, 'missing.js'))).toStrictEqual(['ConfigNotVetted']);
  });
});

/** A program that takes the order for tests, and then does what it is told. */
const program = (name: string, then: string): string => {
  const path = join(scratch, `${name}.cjs`);
  writeFileSync(
    path,
    `process.send({ type: 'ready' });
process.on('message', ({ type, task }) => {
  if (type !== 'start') return;
  const [test, ...others] = task.names;
  process.send({ type: 'phase', phase: 'Running ' + test, waits: false, test });
  ${then}
});`,
  );
  return path;
};

const events = async (path: string, options: Partial<TestConfigOptions> = {}) => {
  const config = await configOf({ validationTests: { a: { description: 'first' }, b: {} } });
  let clock = 0;
  const now = (): number => (clock += 10);
  const all = { program: path, settings: SETTINGS, names: ['a', 'b'], check: () => NEVER, now };
  const event$ = testConfig(config, { ...all, ...options });
  const none: readonly TestEvent[] = [];
  return lastValueFrom(event$.pipe(toArray()), { defaultValue: none });
};

describe('testConfig', () => {
  it('does not call a test failed whose process ended by itself, and runs the next one in another process', async () => {
    const told = await events(program('exits', 'process.exit(3);'));
    expect(told).toMatchObject([
      { type: 'Started', name: 'a' },
      {
        type: 'Tested',
        durationMs: 10,
        report: {
          ...{ name: 'a', description: 'first', outcome: 'inconclusive' },
          reasons: [{ problem: { reason: 'ConfigNotVetted' } }],
        },
      },
      { type: 'Started', name: 'b' },
      { type: 'Tested', report: { name: 'b', outcome: 'inconclusive' } },
    ]);
  });

  it('says of a test that is killed for its memory that it failed', async () => {
    const told = await events(program('aborts', 'process.abort();'), { names: ['a'] });
    expect(told[1]).toMatchObject({
      report: { outcome: 'failed', reasons: [{ problem: { reason: 'ConfigTooLarge' } }] },
    });
  });

  it('keeps the outcomes that came before a process was killed', async () => {
    const then = `process.send({ type: 'tested', report: { name: test, outcome: 'passed', reasons: [] }, durationMs: 5 });
  process.send({ type: 'phase', phase: 'Running b', waits: false, test: others[0] });`;
    const told = await events(program('stalls', then), { limits: { phaseMs: 1_000 } });
    expect(told).toMatchObject([
      { type: 'Started', name: 'a' },
      { type: 'Tested', report: { name: 'a', outcome: 'passed' }, durationMs: 5 },
      { type: 'Started', name: 'b' },
      {
        report: {
          name: 'b',
          outcome: 'failed',
          reasons: [{ problem: { message: 'Running b took longer than 1 s and was ended.' } }],
        },
      },
    ]);
  });

  it('runs nothing when no process does', async () => {
    expect(await events(join(scratch, 'missing.js'))).toMatchObject([
      { type: 'Refused', problems: [{ reason: 'ConfigNotVetted' }] },
    ]);
  });
});
