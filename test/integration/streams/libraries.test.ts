import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sha256 } from '../../../src/digest.ts';
import { parseConfig } from '../../../src/render/config/parse-config.ts';
import { directoryConfig } from '../../../src/streams/config.ts';
import { directorySource } from '../../../src/streams/directory.ts';
import { loadLibraries } from '../../../src/streams/libraries.ts';
import { firstOf } from '../../support/manifest-directory.ts';

let root = '';
const write = (path: string, text: string): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
};

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'haptic-libraries-'));
});
afterEach(() => {
  rmSync(root, { recursive: true });
});

describe('loadLibraries', () => {
  it('reads descriptions and the texts of all files but tests', async () => {
    write(
      'one/library.yaml',
      'name: one\norder: 7\nrequires: [two]\nspec: {maps: {m: {file: sub/m.njk}}}\n',
    );
    write('one/sub/m.njk', 'text');
    write('one/tests/case.yaml', 'name: case\n');
    write('two/library.yaml', 'name: two\norder: 1\nenabled: false\ndescription: second\n');
    write('no-library/readme', '');
    write('README.md', '');
    const loaded = await loadLibraries(root);
    expect(loaded).toMatchObject({ ok: true });
    const libraries = loaded.ok ? loaded.libraries : [];
    expect(libraries.map(({ files: _, ...rest }) => rest)).toStrictEqual([
      {
        name: 'one',
        description: '',
        order: 7,
        enabled: true,
        requires: ['two'],
        spec: { maps: { m: { file: 'sub/m.njk' } } },
      },
      { name: 'two', description: 'second', order: 1, enabled: false, requires: [], spec: {} },
    ]);
    expect([...(libraries[0]?.files.keys() ?? [])].sort()).toStrictEqual([
      'library.yaml',
      'sub/m.njk',
    ]);
  });

  it.each([
    ['broken YAML', 'name: [\n', 'InvalidYAML', undefined],
    ['another name than the folder', 'name: other\norder: 1\n', 'InvalidLibrary', 'name'],
    ['no order', 'name: one\n', 'InvalidLibrary', 'order'],
    ['an unknown field', 'name: one\norder: 1\nspecs: {}\n', 'InvalidLibrary', 'specs'],
    ['a text for an order', 'name: one\norder: first\n', 'InvalidLibrary', 'order'],
  ])('reports %s', async (...[, yaml, reason, field]) => {
    write('one/library.yaml', yaml);
    const loaded = await loadLibraries(root);
    const [problem] = loaded.ok ? [] : loaded.problems;
    expect(problem).toMatchObject({ reason, place: { source: 'libraries/one/library.yaml' } });
    expect(problem?.field).toBe(field);
  });

  it('rejects when the folder is not there', async () => {
    await expect(loadLibraries(join(root, 'nothing'))).rejects.toThrow('ENOENT');
  });

  it('reads the libraries of this product, which merge without a configuration', async () => {
    const loaded = await loadLibraries(
      fileURLToPath(new URL('../../../libraries', import.meta.url)),
    );
    const libraries = loaded.ok ? loaded.libraries : [];
    expect(libraries.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['base', 'ingress', 'tls']),
    );
    expect(parseConfig(undefined, { libraries, digest: sha256 })).toMatchObject({ ok: true });
  });
});

describe('a configuration in a directory', () => {
  it('is merged over the libraries', async () => {
    write(
      'manifests/config.yaml',
      'apiVersion: haproxy-haptic.org/v1alpha1\nkind: HAProxyTemplateConfig\nmetadata: {name: mine}\nspec: {haproxyConfig: {template: "global\\n"}}\n',
    );
    const source = directorySource(join(root, 'manifests'));
    const result = await firstOf(directoryConfig(source, { libraries: [], digest: sha256 }));
    expect(result).toMatchObject({
      ok: true,
      config: {
        main: {
          source: 'HAProxyTemplateConfig default/mine: haproxyConfig.template',
          text: 'global\n',
        },
      },
    });
  });
});
