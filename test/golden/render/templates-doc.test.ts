import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { PersistentMap } from '../../../src/cells/persistent-map.ts';
import { FILTERS } from '../../../src/render/language/filters.ts';
import { globalScope } from '../../../src/render/language/functions.ts';
import { TESTS } from '../../../src/render/language/tests.ts';
import type { HostRoutes } from '../../../src/routing/model.ts';
import { defaultSettings } from '../../support/renders.ts';
import {
  HEAD,
  backendModel,
  configMap,
  engineOf,
  refOf,
  runSteps,
  server,
  service,
  snapshotOf,
  templateConfig,
  textOf,
} from '../../support/templates.ts';

const DOC = readFileSync(new URL('../../../docs/templates.md', import.meta.url), 'utf8');

const OBJECTS = [
  configMap('web', {
    color: 'dark blue',
    pem: '-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n',
  }),
  service('one', 'red'),
  service('two', 'blue'),
];

const host: HostRoutes = {
  ...{ host: 'a.example', exact: [], httpsRedirect: false },
  ...{ defaultBackend: undefined, defaultObject: undefined },
  prefix: [{ path: '', backend: 'shop_web_80', object: refOf('web') }],
};

const ROUTES = {
  hosts: PersistentMap.from([['a.example', host]]),
  backends: PersistentMap.from([
    ['shop_web_80', backendModel('shop_web_80', [server('pod-1', '10.0.0.1')])],
  ]),
};

const SNIPPETS = {
  'greet-2': ' world',
  'greet-1': 'hello',
  lib: '{% macro twice(n) %}{{ n * 2 }}{% endmacro %}',
};

/** Output of a template, or the message it fails with; short ones stand in a file, where an emitter can stand anywhere. */
const outcome = (
  template: string,
  { map = '', isFile = false }: { readonly map?: string; readonly isFile?: boolean } = {},
): { text: string; map: string; failure: string } => {
  const body = `{% set web = resources.configmaps.get("shop", "web") %}\n${template}`;
  const parts = {
    main: isFile ? HEAD : `${HEAD}${body}`,
    snippets: SNIPPETS,
    maps: { 'hosts.map': map },
    files: { 'note.txt': isFile ? `${body}\n` : '' },
  };
  const result = runSteps(
    engineOf(parts, () => ROUTES),
    snapshotOf(OBJECTS),
  );
  if (!result.ok) {
    return {
      text: '',
      map: '',
      failure: result.failure.problems.map(({ message }) => message).join('\n'),
    };
  }
  const text = textOf(result.render);
  return {
    text: isFile
      ? textOf(result.render, `${defaultSettings.generalStorageDir}/note.txt`)
      : text.slice(text.indexOf('haproxy\n') + 'haproxy\n'.length),
    map: textOf(result.render, 'maps/hosts.map'),
    failure: '',
  };
};

const cellsOf = (row: string): string[] =>
  row
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim().replaceAll('\\|', '|'));

const codeOf = (cell = ''): string =>
  /^`(.*)`$/.exec(cell)?.[1] ?? cell.slice(cell.indexOf('`') + 1, -1);

/** Rows of all tables that have these two columns. */
const examples = (result: 'prints' | 'fails with'): [string, string][] => {
  const found: [string, string][] = [];
  let columns: string[] = [];
  for (const line of DOC.split('\n')) {
    if (!line.startsWith('|')) columns = [];
    else if (columns.length === 0) columns = cellsOf(line);
    else if (columns.includes(result) && columns.includes('template') && !line.startsWith('| -')) {
      const cells = cellsOf(line);
      found.push([
        codeOf(cells[columns.indexOf('template')]),
        codeOf(cells[columns.indexOf(result)]),
      ]);
    }
  }
  return found;
};

describe('docs/templates.md', () => {
  test.each(examples('prints'))('%s prints %s', (template, text) => {
    const { text: printed, failure } = outcome(template, { isFile: true });
    // A tag at the end swallows the last line feed.
    expect(`${failure}${printed.replace(/\n$/, '')}`).toBe(text);
  });

  test.each(examples('fails with'))('%s fails with %s', (template, message) => {
    expect(outcome(template, { isFile: true }).failure).toContain(message);
  });

  const blocks = [...DOC.matchAll(/```njk( map)?\n(.*?)```\n\n```text\n(.*?)```/gs)];

  test.each(
    blocks.map(
      ([, map, template, text]) => [template ?? '', text ?? '', map !== undefined] as const,
    ),
  )('example %#', (template, text, isMap) => {
    expect(isMap ? outcome('', { map: template }).map : outcome(template).text).toBe(text);
  });

  test('has an example of every filter and test, and names every function and global', () => {
    const first = DOC.split('\n').flatMap((line) =>
      line.startsWith('|') ? [cellsOf(line)[0] ?? ''] : [],
    );
    const named = new Set(
      first.flatMap((cell) => [...cell.matchAll(/`(\w+)/g)].map(([, name]) => name)),
    );
    const globals = globalScope(templateConfig(), {}).names();
    const missing = [...FILTERS.keys(), ...TESTS.keys(), ...globals].filter(
      (name) => !named.has(name),
    );
    expect(missing).toEqual([]);
    expect(examples('prints').length).toBeGreaterThan(60);
    expect(blocks).toHaveLength(3);
  });
});
