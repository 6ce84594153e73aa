import { fc, test } from '@fast-check/vitest';
import { loadAll } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { type ManifestFile, readManifests } from '../../../src/streams/manifest-file.ts';
import { yamlDocuments } from '../../../src/streams/yaml-documents.ts';

const read = (text: string, previous?: ManifestFile) =>
  readManifests('app.yaml', Buffer.from(text), previous);

const contentOf = async (text: string, previous?: ManifestFile): Promise<ManifestFile> => {
  const result = await read(text, previous);
  if (!result.ok) throw new Error(result.problem.message);
  return result.file;
};

const service = (name: string, rest = '') =>
  `apiVersion: v1\nkind: Service\nmetadata:\n  name: ${name}\n${rest}`;

const identities = ({ entries }: ManifestFile) => entries.map(({ identity }) => identity);

describe('readManifests', () => {
  it('reads several documents, comments and empty ones among them, with their lines', async () => {
    const text = `# first\n\n${service('a')}---\n# nothing\n---\n\n--- # mark\n${service('b')}...\n---\n${service('c')}`;
    const file = await contentOf(text);
    expect(identities(file)).toStrictEqual([
      ' Service default a',
      ' Service default b',
      ' Service default c',
    ]);
    expect(file.entries.map(({ line }) => line)).toStrictEqual([3, 12, 18]);
  });

  it.each(['', '\n', '# only a comment\n', '---\n---\n', '\ufeff'])(
    'finds nothing in %j',
    async (text) => {
      expect(await contentOf(text)).toMatchObject({ entries: [], problems: [] });
    },
  );

  it('reads JSON, also with tabs, Windows line ends and a byte order mark', async () => {
    const json = JSON.stringify(
      { apiVersion: 'v1', kind: 'Service', metadata: { name: 'a' } },
      undefined,
      '\t',
    );
    expect(identities(await contentOf(json))).toHaveLength(1);
    const windows = `${service('a')}---\n${service('b')}`.replaceAll('\n', '\r\n');
    expect(identities(await contentOf(`\ufeff${windows}`))).toHaveLength(2);
  });

  test.prop([fc.jsonValue(), fc.constantFrom(undefined, 2, 4)])(
    'reads JSON, however programs write it, as YAML is read',
    (value, indent) => {
      const text = JSON.stringify({ value }, undefined, indent);
      let documents: readonly unknown[] | undefined;
      try {
        documents = loadAll(text);
      } catch {
        documents = undefined; // JSON takes characters that YAML does not
      }
      const read = yamlDocuments(text);
      expect(read.ok ? read.documents : undefined).toStrictEqual(documents);
    },
  );

  it('finds the key that comes twice also in JSON', async () => {
    const twice = '{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","name":"b"}}';
    expect(await read(twice)).toMatchObject({ ok: false, problem: { reason: 'InvalidYAML' } });
  });

  it('opens lists of any kind, lists in lists too', async () => {
    const text = `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Service, metadata: {name: a}}
- apiVersion: networking.k8s.io/v1
  kind: IngressList
  items:
  - metadata: {name: b, namespace: web}
`;
    expect(identities(await contentOf(text))).toStrictEqual([
      ' Service default a',
      'networking.k8s.io Ingress web b',
    ]);
  });

  it('completes what only a server can know, the same way every time', async () => {
    const [one, two] = await Promise.all([contentOf(service('a')), contentOf(service('a'))]);
    const { metadata } = one.entries[0]!.object;
    expect(metadata).toStrictEqual({
      name: 'a',
      namespace: 'default',
      uid: expect.stringMatching(
        /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/,
      ) as unknown,
      creationTimestamp: '1970-01-01T00:00:00Z',
      resourceVersion: expect.stringMatching(/^[0-9a-f]{32}$/) as unknown,
    });
    expect(two.entries).toStrictEqual(one.entries);
  });

  it('keeps what is given, except a resourceVersion that does not follow the file', async () => {
    const given = service(
      'a',
      '  namespace: web\n  uid: u1\n  creationTimestamp: 2024-01-02T03:04:05Z\n  resourceVersion: "7"\n',
    );
    const first = (await contentOf(given)).entries[0]!.object.metadata;
    const second = (await contentOf(`${given}spec: {}\n`)).entries[0]!.object.metadata;
    expect(first).toMatchObject({
      namespace: 'web',
      uid: 'u1',
      creationTimestamp: '2024-01-02T03:04:05Z',
    });
    expect(second.resourceVersion).not.toBe(first.resourceVersion);
  });

  it('gives cluster-scoped kinds no namespace', async () => {
    const text = `apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: haptic, namespace: web}\n`;
    expect((await contentOf(text)).entries[0]?.object.metadata).not.toHaveProperty('namespace');
  });

  it('moves stringData of Secrets to data, as an API server does', async () => {
    const text = `apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: eA==, b: eQ==}\nstringData: {b: grün}\n`;
    const { object } = (await contentOf(text)).entries[0]!;
    expect(object['data']).toStrictEqual({ a: 'eA==', b: Buffer.from('grün').toString('base64') });
    expect(object).not.toHaveProperty('stringData');
  });

  it('keeps members called __proto__ and constructor as plain data', async () => {
    const text = service(
      'a',
      '  labels: {__proto__: x, constructor: y}\n__proto__: {admin: true}\n',
    );
    const { object } = (await contentOf(text)).entries[0]!;
    expect(Object.getPrototypeOf(object)).toBe(Object.prototype);
    expect(object['admin']).toBeUndefined();
    expect(Object.keys(object.metadata.labels ?? {})).toStrictEqual(['__proto__', 'constructor']);
    expect({}).not.toHaveProperty('admin');
  });

  it('reads dates, yes and merge keys as what is written', async () => {
    const text = service('a', 'spec: {on: yes, day: 2024-01-02, <<: {x: 1}}\n');
    expect((await contentOf(text)).entries[0]?.object['spec']).toStrictEqual({
      on: 'yes',
      day: '2024-01-02',
      '<<': { x: 1 },
    });
  });

  it.each([
    [
      '- a\n',
      'A document is not a valid object: a manifest is a mapping with apiVersion and kind.',
    ],
    ['apiVersion: v1\nkind: Service\n', 'A document is not a valid object: metadata is missing.'],
    [
      `${service('a')}  labels: [x]\n`,
      'Service default/a is not a valid object: metadata.labels must be a mapping of texts.',
    ],
  ])(
    'tells what is wrong with an object in one sentence, without the file: %j',
    async (...[text, message]) => {
      expect((await contentOf(text)).problems.map((problem) => problem.message)).toStrictEqual([
        message,
      ]);
    },
  );

  it.each([
    ['a duplicate key', `${service('a')}---\n${service('b')}kind: X\n`, 10, 1],
    ['bad indentation', `${service('a')}spec:\n  - x\n y: 1\n`, 7, 2],
    ['an open bracket', 'a: [1\nb: 2\n', 2, 1],
  ])('tells line and column of %s', async (...[, text, line, column]) => {
    const result = await read(text);
    expect(result).toMatchObject({
      ok: false,
      problem: {
        severity: 'error',
        reason: 'InvalidYAML',
        place: { source: 'app.yaml', line, column },
      },
    });
  });

  it('says what to do with a Helm template', async () => {
    expect(await read('metadata:\n  name: {{ .Release.Name }}-web\n  x: [\n')).toMatchObject({
      ok: false,
      problem: {
        reason: 'InvalidYAML',
        nextStep: expect.stringContaining('helm template') as string,
      },
    });
  });

  it.each([
    ['base/kustomization.yaml', 'apiVersion: k/v1\nkind: Kustomization\n', 'kubectl kustomize'],
    ['chart/Chart.yaml', 'apiVersion: v2\nname: web\n', 'helm template'],
    ['chart/values-prod.yaml', 'replicas: 2\n', 'helm template'],
    ['web.yaml', 'replicas: 2\n', 'Correct the manifest'],
  ])('says what to do with %s', async (path, text, remedy) => {
    const result = await readManifests(path, Buffer.from(text));
    const steps = result.ok ? result.file.problems.map(({ nextStep }) => nextStep) : [];
    expect(steps.join()).toContain(remedy);
  });

  it.each([
    ['an alias', 'password: *hunter2\n'],
    ['a tag', 'password: !hunter2 x\n'],
    ['a value', 'password: "hunter2\n'],
  ])('quotes nothing of a broken file, not even %s', async (_, text) => {
    expect(JSON.stringify(await read(text))).not.toContain('hunter2');
  });

  it('refuses aliases that multiply, and values that hold themselves', async () => {
    const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
    for (let level = 1; level < 10; level += 1) {
      const alias = `*a${level - 1}`;
      lines.push(`a${level}: &a${level} [${Array(10).fill(alias).join(', ')}]`);
    }
    expect(await read(`${lines.join('\n')}\n`)).toMatchObject({ ok: false });
    expect(await read('a: &a [*a]\n')).toMatchObject({ ok: false });
    expect(await read(`${service('a')}x: &x [1]\ny: *x\n`)).toMatchObject({ ok: true });
  });

  it.each([
    ['a list', '- a\n', ''],
    ['no apiVersion', 'kind: Service\nmetadata: {name: a}\n', 'apiVersion'],
    ['no kind', 'apiVersion: v1\nmetadata: {name: a}\n', 'kind'],
    ['no metadata', 'apiVersion: v1\nkind: Service\n', 'metadata'],
    ['no name', 'apiVersion: v1\nkind: Service\nmetadata: {generateName: a}\n', 'metadata.name'],
    ['a number for a name', service('7'), 'metadata.name'],
    ['a slash in a name', service('a/b'), 'metadata.name'],
    ['a line feed in a name', service('"a\\nb"'), 'metadata.name'],
    ['a path for a namespace', service('a', '  namespace: ../b\n'), 'metadata.namespace'],
    ['a number for a label', service('a', '  labels: {x: 1}\n'), 'metadata.labels'],
    ['a list for annotations', service('a', '  annotations: [x]\n'), 'metadata.annotations'],
    ['a number for a uid', service('a', '  uid: 1\n'), 'metadata.uid'],
    ['an item without a kind', 'kind: List\nitems: [{apiVersion: v1}]\n', 'items[0].kind'],
  ])('refuses %s, and reads the rest', async (_, text, field) => {
    const file = await contentOf(`${text}---\n${service('good')}`);
    expect(identities(file)).toStrictEqual([' Service default good']);
    expect(file.problems).toMatchObject([
      { reason: 'InvalidObject', field, place: { source: 'app.yaml', line: 1 } },
    ]);
  });

  it('keeps the last good state of an object that became invalid', async () => {
    const good = await contentOf(`${service('a', 'spec: {port: 1}\n')}---\n${service('b')}`);
    const edited = `${service('a', '  labels: {x: 1}\nspec: {port: 2}\n')}---\n${service('c')}`;
    const file = await contentOf(edited, good);
    expect(identities(file)).toStrictEqual([' Service default a', ' Service default c']);
    expect(file.entries[0]?.object['spec']).toStrictEqual({ port: 1 });
    expect(file.problems).toHaveLength(1);
  });

  it('reuses the objects of documents that did not change', async () => {
    const before = await contentOf(`${service('a')}---\n${service('b')}---\n${service('c')}`);
    const after = await contentOf(
      `# moved\n---\n${service('b')}---\n${service('c', 'spec: {}\n')}`,
      before,
    );
    expect(after.entries[0]?.object).toBe(before.entries[1]?.object);
    expect(after.entries[0]?.line).toBe(3);
    expect(after.entries[1]?.object).not.toBe(before.entries[2]?.object);
  });

  test.prop([
    fc.array(
      fc.constantFrom(
        '---',
        '--- ',
        '--- # x',
        '---x',
        '# c',
        '',
        'a: 1',
        '- b',
        '  - c',
        '...',
        '|',
        '  ---',
        'x: |',
        '  text',
        '"q',
        'r"',
        '%YAML 1.2',
      ),
      { maxLength: 8 },
    ),
  ])('cuts a file where YAML does', async (lines) => {
    const text = lines.map((line) => `${line}\n`).join('');
    let documents: readonly unknown[] | undefined;
    try {
      documents = loadAll(text).filter((document) => document !== null);
    } catch {
      documents = undefined;
    }
    const result = await read(text);
    expect(result.ok).toBe(documents !== undefined);
    // Nothing here is a valid object, so every document that was seen is one problem.
    if (result.ok) expect(result.file.problems).toHaveLength(documents?.length ?? -1);
  });
});
