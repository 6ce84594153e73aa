/**
 * Adds up what the runners report. Pure functions; a runner that says nothing has failed.
 */

/** What one stage, or all of them, came to. */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
  /** Full names of the tests that did not run. */
  readonly skipped: readonly string[];
  /** What went wrong besides failed tests, such as a runner that crashed. */
  readonly faults: readonly string[];
}

/** The part of vitest's JSON report that is read. */
interface VitestReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

/** A check that is no test runner (types, lint, …) counts as one. */
export function tallyCheck(ok: boolean): Tally {
  return { passed: ok ? 1 : 0, failed: ok ? 0 : 1, skipped: [], faults: [] };
}

/**
 * Counts a vitest run. A test file that could not be loaded, a run without tests, a report that is
 * not there, and an exit status that the report does not explain count as one failure each.
 *
 * @param report text of vitest's JSON report; undefined when there is none
 * @param ok whether the runner ended with exit status 0
 */
export function tallyVitest(report: string | undefined, ok: boolean): Tally {
  const files = parse(report)?.testResults;
  if (files === undefined) return broken('the runner left no report: it crashed');
  const tests = files.flatMap((file) => file.assertionResults);
  const passed = tests.filter(({ status }) => status === 'passed').length;
  const failedTests = tests.filter(({ status }) => status === 'failed').length;
  const others = tests.filter(({ status }) => status !== 'passed' && status !== 'failed');
  const faults = files
    .filter((file) => file.status === 'failed' && !hasFailedTest(file.assertionResults))
    .map((file) => `${file.name} failed outside its tests`);
  if (passed + failedTests + faults.length === 0) faults.push('no test ran');
  if (!ok && failedTests + faults.length === 0) faults.push('the runner failed outside the tests');
  return {
    passed,
    failed: failedTests + faults.length,
    skipped: others.map(({ fullName }) => fullName),
    faults,
  };
}

/**
 * Tests that were not even started: they are named like skipped ones.
 *
 * @param what which, and why
 * @param isFailure whether leaving them out is one, as in continuous integration
 */
export function tallyLeftOut(what: string, isFailure: boolean): Tally {
  const faults = isFailure ? ['these tests must not be left out here'] : [];
  return { passed: 0, failed: faults.length, skipped: [what], faults };
}

/** Adds tallies up. */
export function sum(tallies: readonly Tally[]): Tally {
  return {
    passed: tallies.reduce((total, { passed }) => total + passed, 0),
    failed: tallies.reduce((total, { failed }) => total + failed, 0),
    skipped: tallies.flatMap(({ skipped }) => skipped),
    faults: tallies.flatMap(({ faults }) => faults),
  };
}

/** The last line of `npm test`, exactly: `12 passed, 0 failed`. */
export function closingLine({ passed, failed }: Tally): string {
  return `${passed} passed, ${failed} failed`;
}

/** Exit status of the whole: nothing failed and something ran. */
export function exitStatus({ passed, failed }: Tally): 0 | 1 {
  return failed === 0 && passed > 0 ? 0 : 1;
}

function hasFailedTest(tests: readonly { readonly status: string }[]): boolean {
  return tests.some(({ status }) => status === 'failed');
}

function broken(fault: string): Tally {
  return { passed: 0, failed: 1, skipped: [], faults: [fault] };
}

function parse(report: string | undefined): VitestReport | undefined {
  try {
    const parsed = JSON.parse(report ?? '') as Partial<VitestReport> | null;
    return Array.isArray(parsed?.testResults) ? (parsed as VitestReport) : undefined;
  } catch {
    return undefined;
  }
}
