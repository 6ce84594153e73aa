/** The three forms of a report of `haptic test`. `UPDATE_GOLDEN=1` rewrites what is expected; then read the difference. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fc, test as property } from '@fast-check/vitest';
import { describe, expect, test } from 'vitest';
import { junitXml } from '../../../src/cli/test-junit.ts';
import {
  asJson,
  type RunReport,
  suiteHeading,
  summary,
  testText,
  type TimedTest,
} from '../../../src/cli/test-report.ts';
import type { Problem } from '../../../src/snapshot/problem.ts';

const UPDATE = process.env['UPDATE_GOLDEN'] === '1';

const expectGolden = (name: string, text: string): void => {
  const path = join(import.meta.dirname, name);
  if (UPDATE) writeFileSync(path, text);
  expect(existsSync(path)).toBe(true);
  expect(text).toBe(readFileSync(path, 'utf8'));
};

const OBJECT = { apiVersion: 'v1', kind: 'Service', namespace: 'shop', name: 'web', uid: '' };
const SOURCE = 'HAProxyTemplateConfig default/haptic: templateSnippets.x.template';

const failed = (name: string, path: string, rest: Partial<Problem>): Problem => ({
  severity: 'error',
  reason: 'ValidationTestFailed',
  nextStep: 'Correct the templates, or the test.',
  field: `spec.validationTests.${name}.${path}`,
  ...rest,
  message: `Test ${JSON.stringify(name)}: ${rest.message ?? ''}`,
});

const HOSTILE = 'b\u001b[31m <"\'&]]>\u0000\u202e\n\u0085\uffffé';

const TESTS: readonly TimedTest[] = [
  { name: 'a-good', description: 'all is well', outcome: 'passed', reasons: [], durationMs: 12.34 },
  {
    name: 'b-misses',
    outcome: 'failed',
    durationMs: 1_250,
    reasons: [
      {
        problem: failed('b-misses', 'assertions[0]', {
          message: 'contains (has x): haproxy.cfg does not match "x y".',
        }),
        expected: 'a match of /x y/',
        found: 'most like it line 3:     x z',
      },
      {
        problem: failed('b-misses', 'assertions[1]', {
          message: 'match_count: haproxy.cfg matches "y" 2 times, not 1.',
        }),
        expected: 'matches of /y/: 1',
        found: 'line 1: y\nline 2: y',
      },
    ],
  },
  {
    name: 'c-breaks',
    outcome: 'failed',
    durationMs: 5,
    reasons: [
      {
        problem: failed('c-breaks', 'fixtures', {
          message: 'cannot be rendered: one.data has no member "x".',
          place: { source: SOURCE, line: 3, column: 7 },
          object: OBJECT,
          nextStep: 'Correct the name.',
        }),
      },
    ],
  },
  {
    name: 'd-endless',
    outcome: 'failed',
    durationMs: 30_000,
    reasons: [
      {
        problem: {
          severity: 'error',
          reason: 'ConfigTooSlow',
          message: 'Running the test "d-endless" took longer than 30 s and was ended.',
          nextStep: 'Look for a loop.',
        },
      },
    ],
  },
  {
    name: 'e-later',
    outcome: 'skipped',
    durationMs: 0,
    reasons: [
      {
        problem: {
          severity: 'warning',
          reason: 'ValidationTestSkipped',
          message: 'It needs HAProxy 9.9, and this is 3.4.7.',
          nextStep: 'Nothing, if that is meant.',
        },
      },
    ],
  },
  {
    name: 'f-unclear',
    outcome: 'inconclusive',
    durationMs: 1,
    reasons: [
      {
        problem: failed('f-unclear', 'assertions[0]', {
          message: 'haproxy_valid: there is no haproxy.',
          nextStep: 'Remove the cause: the test was not judged.',
          reason: 'ConfigNotJudged',
        }),
      },
    ],
  },
  {
    name: HOSTILE,
    description: HOSTILE,
    outcome: 'failed',
    durationMs: 1,
    reasons: [
      {
        problem: failed(HOSTILE, 'assertions[0]', { message: HOSTILE, nextStep: HOSTILE }),
        expected: HOSTILE,
        found: HOSTILE,
      },
    ],
  },
];

const RUN: RunReport = {
  haproxy: '3.4.7',
  suites: [
    { name: 'HAProxyTemplateConfig default/haptic', tests: TESTS },
    {
      name: 'HAProxyTemplateConfig default/other',
      tests: [{ name: 'a-good', outcome: 'passed', reasons: [], durationMs: 1 }],
    },
  ],
  problems: [
    {
      severity: 'error',
      reason: 'InvalidYAML',
      message: 'broken.yaml is not valid YAML.',
      nextStep: 'Correct it.',
      place: { source: 'broken.yaml', line: 2, column: 1 },
    },
    { severity: 'warning', reason: 'X', message: 'a warning.', nextStep: '' },
  ],
  durationMs: 31_300,
};

const asText = ({ suites, ...run }: RunReport): string =>
  [
    ...suites.flatMap(({ name, tests }) => [suiteHeading(name), ...tests.map(testText)]),
    summary({ suites, ...run }),
  ].join('');

describe('the report of tests', () => {
  test('as text', () => {
    expectGolden('report.txt', asText(RUN));
  });

  test('as JSON', () => {
    expectGolden('report.json', `${JSON.stringify(asJson(RUN), undefined, 2)}\n`);
  });

  test('as JUnit XML', () => {
    expectGolden('report.xml', junitXml(RUN));
  });

  test('says when nothing ran', () => {
    const nothing = { ...RUN, suites: [], problems: [], haproxy: undefined };
    expect(asText(nothing)).toBe('no test was run (31.3 s)\n');
    expect(junitXml(nothing)).toBe(
      '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="haptic test" tests="0" failures="0" errors="0" time="31.300"/>\n',
    );
  });
});

/** Any text, with many of the characters that mean something somewhere. */
const text = fc.string({
  unit: fc.oneof(
    fc.constantFrom('<', '>', '&', '"', "'", ']]>', '\n', '\r', '\t', '\u0000', '\u001b', '\ufffe'),
    fc.constantFrom('\ud800', '\udc00', '\u0085', '\u202e', '\u2028', 'é', '😀', 'a', ' '),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  ),
});

const reportOf = (word: string): RunReport => ({
  ...RUN,
  suites: [
    {
      name: word,
      tests: [
        {
          name: word,
          outcome: 'failed',
          durationMs: 1,
          reasons: [
            {
              problem: failed(word, 'assertions[0]', { message: word, nextStep: word }),
              expected: word,
              found: word,
            },
          ],
        },
      ],
    },
  ],
  problems: [{ severity: 'error', reason: 'X', message: word, nextStep: word, field: word }],
});

const ATTRIBUTE = '[\\w]+="(?:[^<&"\\n\\t]|&(?:amp|lt|gt|quot|#9|#10);)*"';
const TAG = `<(?:\\w+(?: ${ATTRIBUTE})*/?|/\\w+)>`;
const CONTENT = '(?:[^<&>]|&(?:amp|lt|gt);)*';
const DOCUMENT = new RegExp(
  `^<\\?xml version="1\\.0" encoding="UTF-8"\\?>\\n(?:${TAG}${CONTENT})*$`,
  'u',
);

describe('a report of any names and messages', () => {
  property.prop([text])('is well-formed XML without forbidden characters', (word) => {
    const xml = junitXml(reportOf(word));
    expect(xml).toMatch(DOCUMENT);
    expect(xml.isWellFormed()).toBe(true);
    expect(xml).not.toMatch(/[^\P{Cc}\n\t]|[\ufffe\uffff]/u);
    const open: string[] = [];
    for (const [, end, name = '', isEmpty] of xml.matchAll(/<(\/?)(\w+)[^>]*?(\/?)>/g)) {
      if (end === '/') expect(open.pop()).toBe(name);
      else if (isEmpty === '') open.push(name);
    }
    expect(open).toStrictEqual([]);
  });

  property.prop([text])('gives a terminal no orders', (word) => {
    expect(asText(reportOf(word))).not.toMatch(/[^\P{Cc}\n]|\p{Bidi_Control}/u);
  });
});
