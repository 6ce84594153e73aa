import { describe, expect, test } from 'vitest';
import {
  closingLine,
  exitStatus,
  sum,
  tallyCheck,
  tallyLeftOut,
  tallyVitest,
} from '../../../tools/testing/tally.ts';

function report(...files: { status?: string; tests: string[] }[]): string {
  return JSON.stringify({
    testResults: files.map(({ status = 'passed', tests }, index) => ({
      name: `file-${index}.test.ts`,
      status,
      assertionResults: tests.map((test) => ({ fullName: `a ${test} test`, status: test })),
    })),
  });
}

describe('tallyLeftOut', () => {
  test('names what was left out, and is a failure only where nothing may be', () => {
    const reason = 'all tests on Kubernetes: it needs root';
    expect(tallyLeftOut(reason, false)).toMatchObject({ failed: 0, skipped: [reason], faults: [] });
    expect(tallyLeftOut(reason, true)).toMatchObject({ failed: 1, skipped: [reason] });
    expect(exitStatus(sum([tallyCheck(true), tallyLeftOut(reason, true)]))).toBe(1);
  });
});

describe('tallyVitest', () => {
  test('adds up the tests of all files', () => {
    const text = report({ tests: ['passed', 'passed'] }, { tests: ['passed'] });
    expect(tallyVitest(text, true)).toEqual({ passed: 3, failed: 0, skipped: [], faults: [] });
  });

  test('counts failed tests once, although their file has failed too', () => {
    const text = report({ status: 'failed', tests: ['passed', 'failed', 'failed'] });
    expect(tallyVitest(text, false)).toMatchObject({ passed: 1, failed: 2, faults: [] });
  });

  test('counts a file that could not be loaded as one failure', () => {
    const text = report({ tests: ['passed'] }, { status: 'failed', tests: [] });
    expect(tallyVitest(text, false)).toMatchObject({
      passed: 1,
      failed: 1,
      faults: ['file-1.test.ts failed outside its tests'],
    });
  });

  test('counts a failure in a hook, where all tests have passed, as one failure', () => {
    const text = report({ status: 'failed', tests: ['passed'] });
    expect(tallyVitest(text, false)).toMatchObject({ passed: 1, failed: 1 });
  });

  test('counts an exit status that the report does not explain as one failure', () => {
    expect(tallyVitest(report({ tests: ['passed'] }), false)).toMatchObject({
      passed: 1,
      failed: 1,
    });
  });

  test('names the tests that did not run, of every kind', () => {
    const text = report({ tests: ['passed', 'skipped', 'pending', 'todo'] });
    expect(tallyVitest(text, true)).toMatchObject({
      passed: 1,
      failed: 0,
      skipped: ['a skipped test', 'a pending test', 'a todo test'],
    });
  });

  test.each([
    ['no file', report()],
    ['only skipped tests', report({ tests: ['skipped'] })],
  ])('counts a run with %s as one failure', (_, text) => {
    expect(tallyVitest(text, true)).toMatchObject({
      passed: 0,
      failed: 1,
      faults: ['no test ran'],
    });
  });

  test.each([
    ['missing', undefined],
    ['empty', ''],
    ['cut short', '{"testResults":['],
    ['null', 'null'],
    ['of another shape', '{"testResults":3}'],
  ])('counts a report that is %s as a crash, whatever the exit status', (_, text) => {
    expect(tallyVitest(text, true)).toMatchObject({ passed: 0, failed: 1 });
  });
});

describe('the verdict', () => {
  test('counts a check as one', () => {
    expect(sum([tallyCheck(true), tallyCheck(false), tallyCheck(true)])).toMatchObject({
      passed: 2,
      failed: 1,
    });
  });

  test('closes with one exact line', () => {
    const total = sum([
      tallyVitest(report({ tests: ['passed', 'skipped'] }), true),
      tallyCheck(true),
    ]);
    expect(closingLine(total)).toBe('2 passed, 0 failed');
    expect(total.skipped).toEqual(['a skipped test']);
  });

  test('is bad when something failed, and when nothing ran', () => {
    expect(exitStatus(sum([tallyCheck(true)]))).toBe(0);
    expect(exitStatus(sum([tallyCheck(true), tallyCheck(false)]))).toBe(1);
    expect(exitStatus(sum([]))).toBe(1);
  });
});
