import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import { yamlDocuments } from '../../../src/streams/yaml-documents.ts';
import { snapshotOf } from '../../support/objects.ts';
import { LIBRARIES, libraryEngine, renderAll, textsOf } from '../../support/rendered.ts';

/** One file of `libraries/<library>/tests`; libraries/README.md describes it. */
interface Case {
  readonly name: string;
  readonly objects: readonly KubeObject[];
  readonly extraContext?: Readonly<Record<string, unknown>>;
  readonly defaultCertificate?: boolean;
  readonly expect: readonly Expectation[];
}

interface Expectation {
  readonly file?: string;
  readonly contains?: readonly string[];
  readonly lacks?: readonly string[];
  readonly equals?: string;
  readonly problem?: string;
  readonly fails?: string;
}

const PEM = ['CERTIFICATE', 'PRIVATE KEY']
  .map((what) => `-----BEGIN ${what}-----\nAAAA\n-----END ${what}-----\n`)
  .join('');

const FIELDS = ['name', 'objects', 'extraContext', 'defaultCertificate', 'expect'];
const EXPECTATIONS = ['file', 'contains', 'lacks', 'equals', 'problem', 'fails'];

const cases = ['base', 'tls', 'ingress'].flatMap((library) => {
  const folder = join(LIBRARIES, library, 'tests');
  return readdirSync(folder).map((file) => {
    const read = yamlDocuments(readFileSync(join(folder, file), 'utf8'));
    if (!read.ok) throw new Error(`${library}/tests/${file}: ${read.error.reason}`);
    return [`${library}/tests/${file}`, read.documents[0] as Case] as const;
  });
});

describe('the cases of the libraries', () => {
  test.each(cases)('%s', async (_file, one) => {
    expect(Object.keys(one).filter((field) => !FIELDS.includes(field))).toStrictEqual([]);
    const engine = await libraryEngine({
      ...(one.defaultCertificate === true ? { defaultPem: PEM } : {}),
      overrides: { extraContext: one.extraContext ?? {} },
    });
    const render = (): ReturnType<typeof renderAll> => renderAll(engine, snapshotOf(one.objects));
    for (const expectation of one.expect) {
      expect(Object.keys(expectation).filter((key) => !EXPECTATIONS.includes(key))).toStrictEqual(
        [],
      );
      if (expectation.fails !== undefined) expect(render).toThrow(expectation.fails);
      else expectRender(render(), expectation);
    }
  });
});

const expectRender = (render: ReturnType<typeof renderAll>, expectation: Expectation): void => {
  const { file = '', contains = [], lacks = [], equals, problem } = expectation;
  const text = textsOf(render)[file];
  if (problem !== undefined) expect(render.problems.map(({ reason }) => reason)).toContain(problem);
  else expect(text).toBeDefined();
  for (const part of contains) expect(text).toContain(part);
  for (const part of lacks) expect(text).not.toContain(part);
  if (equals !== undefined) expect(text).toBe(equals);
};
