import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runStage, runStages, type Stage } from '../../../tools/testing/stage.ts';

let dir = '';

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'hap-'));
});

afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

function node(script: string, more: Partial<Stage> = {}): Stage {
  return { name: 'stage', command: [process.execPath, '-e', script], ...more };
}

test('a program that ends well is one check passed, with its output kept', async () => {
  const result = await runStage(node('console.log("out"); console.error("err")'));
  expect(result.tally).toMatchObject({ passed: 1, failed: 0 });
  expect(result.output).toContain('out');
  expect(result.output).toContain('err');
});

test('a program that ends badly, by status or by signal, is one check failed', async () => {
  const byStatus = await runStage(node('process.exit(3)'));
  const bySignal = await runStage(node('process.kill(process.pid, "SIGKILL")'));
  expect(byStatus.tally).toMatchObject({ passed: 0, failed: 1 });
  expect(bySignal.tally).toMatchObject({ passed: 0, failed: 1 });
});

test('a program that is not there is one check failed, and says so', async () => {
  const { tally } = await runStage({ name: 'stage', command: [join(dir, 'missing')] });
  expect(tally).toMatchObject({ passed: 0, failed: 1 });
  expect(tally.faults.join()).toContain('ENOENT');
});

test('a program that hangs is stopped and has failed', async () => {
  const { tally } = await runStage(node('setInterval(() => 1, 1000)', { timeoutMs: 200 }));
  expect(tally).toMatchObject({ passed: 0, failed: 1, faults: ['stopped after 0.2 s'] });
});

test('a report of an earlier run is never counted', async () => {
  const report = join(dir, 'report.json');
  const passing = JSON.stringify({
    testResults: [{ name: 'a', status: 'passed', assertionResults: [{ status: 'passed' }] }],
  });
  const write = `require('fs').writeFileSync(${JSON.stringify(report)}, ${JSON.stringify(passing)})`;
  expect((await runStage(node(write, { report }))).tally).toMatchObject({ passed: 1, failed: 0 });
  expect((await runStage(node('', { report }))).tally).toMatchObject({ passed: 0, failed: 1 });
});

test('stages run at most so many at a time, in order, and each is reported', async () => {
  const reported: string[] = [];
  const stages = ['one', 'two', 'three'].map((name) => node('', { name }));
  const results = await runStages(stages, 1, ({ stage }) => reported.push(stage.name));
  expect(reported).toEqual(['one', 'two', 'three']);
  expect(results.map(({ tally }) => tally.passed)).toEqual([1, 1, 1]);
});
