/**
 * Runs the checks and adds up what they report: `node tools/test.ts [check]`.
 *
 * `check` is what needs no HAProxy; without it, everything. The last line is exactly
 * `N passed, N failed`; the exit status is 0 only when nothing failed and something ran.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { usesOwnCluster, whyNoCluster } from '../test/cluster/harness/requirements.ts';
import { runStages, stopStages, type Stage, type StageResult } from './testing/stage.ts';
import { closingLine, exitStatus, sum, tallyLeftOut } from './testing/tally.ts';

const reports = mkdtempSync(join(tmpdir(), 'haptic-test-'));

type Runner = Pick<Stage, 'command' | 'report'>;

function reporting(name: string, command: Stage['command']): Runner {
  const report = join(reports, `${name}.json`);
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  return { command: [...command, ...reporters], report };
}

function vitest(project: string): Runner {
  const command = ['vitest', 'run', '--config', 'test/vitest.config.ts'] as const;
  return reporting(project, [...command, '--project', project]);
}

const FOLDERS = ['src', 'agent', 'test', 'bench', 'tools'];
const CODE = `{${FOLDERS.join(',')}}/**/*.{ts,js,cjs}`;

/** The longest first, so that two cores end at about the same time. */
const CHECKS: readonly Stage[] = [
  { name: 'unit, marble and property tests', ...vitest('fast') },
  { name: 'types', command: ['tsc'] },
  { name: 'lint', command: ['eslint', '--config', 'tools/eslint.config.js', '.'] },
  { name: 'format', command: ['prettier', '--check', CODE] },
  {
    name: 'import rules',
    command: ['depcruise', '--config', 'tools/dependency-cruiser.cjs', ...FOLDERS],
  },
  { name: 'unused code', command: ['knip', '--config', 'tools/knip.json'] },
];

const BUILD: Stage = { name: 'build', command: ['node', 'tools/build.ts'] };

const INTEGRATION: Stage = {
  name: 'integration with HAProxy',
  ...vitest('integration'),
  live: true,
  timeoutMs: 900_000,
};

/** The first run builds Kubernetes, which takes most of this. */
const CLUSTER: Stage = {
  name: 'integration with Kubernetes',
  ...reporting('cluster', ['node', 'test/cluster/harness/main.ts', 'test', '--down']),
  live: true,
  timeoutMs: 75 * 60_000,
};

/** @returns why the cluster tests are left out, or undefined when they run */
function whyLeftOut(): string | undefined {
  if (process.env['HAPTIC_CLUSTER'] === 'off') return 'HAPTIC_CLUSTER=off is set';
  return usesOwnCluster() ? undefined : whyNoCluster();
}

/** Alone, and after everything else: it is the longest. */
async function runCluster(): Promise<StageResult[]> {
  const reason = whyLeftOut();
  if (reason === undefined) return runStages([CLUSTER], 1, report);
  const tally = tallyLeftOut(`all tests on Kubernetes: ${reason}`, process.env['CI'] === 'true');
  const result = { stage: CLUSTER, tally, durationMs: 0, output: '' };
  report(result);
  return [result];
}

function report({ stage, tally, durationMs, output }: StageResult): void {
  const seconds = (durationMs / 1000).toFixed(1);
  const mark = tally.failed === 0 ? '✓' : '✗';
  if (tally.failed > 0) console.log(`\n───── ${stage.name} ─────\n${output.trimEnd()}`);
  for (const fault of tally.faults) console.log(`! ${stage.name}: ${fault}`);
  for (const name of tally.skipped) console.log(`! SKIPPED: ${name}`);
  console.log(`${mark} ${stage.name}: ${closingLine(tally)} (${seconds} s)`);
}

async function main(mode: string | undefined): Promise<void> {
  process.chdir(fileURLToPath(new URL('..', import.meta.url)));
  const started = performance.now();
  const width = Math.max(1, Math.min(availableParallelism(), 4));
  const parallel = mode === 'check' ? CHECKS : [...CHECKS, BUILD];
  const results = await runStages(parallel, width, report);
  // Alone, because it measures time limits of real processes.
  if (mode !== 'check') {
    results.push(...(await runStages([INTEGRATION], 1, report)));
    results.push(...(await runCluster()));
  }
  rmSync(reports, { recursive: true, force: true });

  const total = sum(results.map(({ tally }) => tally));
  if (total.skipped.length > 0) console.log(`\n! ${total.skipped.length} tests were SKIPPED`);
  console.log(`\n${((performance.now() - started) / 1000).toFixed(1)} s`);
  console.log(closingLine(total));
  process.exitCode = exitStatus(total);
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    stopStages();
    process.exit(130);
  });
}
await main(process.argv[2]);
