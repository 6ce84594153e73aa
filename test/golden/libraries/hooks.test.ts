import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import { ingress, service, slice, snapshotOf } from '../../support/objects.ts';
import { LIBRARIES, libraryEngine, renderAll, textsOf } from '../../support/rendered.ts';

const templates = ['base', 'tls', 'ingress'].flatMap((library) =>
  readdirSync(join(LIBRARIES, library))
    .filter((file) => file.endsWith('.njk'))
    .map((file) => ({ library, text: readFileSync(join(LIBRARIES, library, file), 'utf8') })),
);

/** `hook library`, as the templates include them. */
const included = templates
  .flatMap(({ library, text }) =>
    [...text.matchAll(/\{% include "([a-z-]+)-\*" %\}/g)].map(([, hook]) => `${hook} ${library}`),
  )
  .filter((line, index, all) => all.indexOf(line) === index);

const page = readFileSync(join(LIBRARIES, '..', 'docs', 'hooks.md'), 'utf8');
const documented = [...page.matchAll(/^\| `([a-z-]+)` +\| (\w+)/gm)].map(
  ([, hook, library]) => `${hook} ${library}`,
);

const config = (templateSnippets: Record<string, { template: string }>): KubeObject => ({
  apiVersion: 'haproxy-haptic.org/v1alpha1',
  kind: 'HAProxyTemplateConfig',
  metadata: { namespace: 'default', name: 'haptic' },
  spec: { templateSnippets },
});

const objects = [
  ingress('web', { rules: [['a.example.com', '/', 'web:80']] }),
  service('web'),
  slice('web'),
];

describe('hooks', () => {
  test('are all in docs/hooks.md, and no others', () => {
    expect(documented.toSorted()).toStrictEqual(included.toSorted());
  });

  test('are not the beginning of one another, so that a snippet joins one hook alone', () => {
    const hooks = documented.map((line) => line.replace(/ .*/, ''));
    for (const hook of hooks) {
      expect(hooks.filter((other) => other.startsWith(`${hook}-`))).toStrictEqual(
        hook === 'frontend' ? ['never'] : [],
      );
    }
  });

  test.each(documented.map((line) => line.replace(/ .*/, '')))(
    '%s prints a snippet',
    async (hook) => {
      const snippets = { [`${hook}-700-mine`]: { template: '    # printed here\n' } };
      const engine = await libraryEngine({ config: config(snippets), defaultPem: PEM });
      const text = textsOf(renderAll(engine, snapshotOf(objects)))['haproxy.cfg'] ?? '';
      expect(text.split('# printed here').length - 1).toBe(hook === 'defaults' ? 2 : times(hook));
    },
  );

  test.each(documented.map((line) => line.replace(/ .*/, '')))(
    '%s stands where the page says',
    async (hook) => {
      const marker = WHOLE_SECTIONS.includes(hook) ? '# here' : '    # here';
      const snippets = { [`${hook}-700-mine`]: { template: `${marker}\n` } };
      const engine = await libraryEngine({ config: config(snippets), defaultPem: PEM });
      const lines = (textsOf(renderAll(engine, snapshotOf(objects)))['haproxy.cfg'] ?? '').split(
        '\n',
      );
      const found = lines.flatMap((line, index) => (line === marker ? [index] : []));
      const place = PLACES[hook];
      expect(found.map((index) => lines.slice(0, index).findLast(isHeader))).toStrictEqual(
        place?.in,
      );
      for (const index of found) {
        if (place?.before !== undefined) expect(lines[index + 1]).toMatch(place.before);
        if (place?.behind !== undefined) expect(lines[index - 1]).toMatch(place.behind);
      }
    },
  );

  test('are in the page in the order in which they are printed', async () => {
    const hooks = documented.map((line) => line.replace(/ .*/, ''));
    const snippets = Object.fromEntries(
      hooks.map((hook) => [`${hook}-700-mine`, { template: `    # in ${hook}\n` }]),
    );
    const engine = await libraryEngine({ config: config(snippets), defaultPem: PEM });
    const text = textsOf(renderAll(engine, snapshotOf(objects)))['haproxy.cfg'] ?? '';
    const printed = [...text.matchAll(/# in (.*)/g)].map(([, hook]) => hook);
    expect([...new Set(printed)]).toStrictEqual(hooks);
  });

  test('leave out a snippet of a library that one of the same name replaces', async () => {
    const snippets = { 'routed-500-https-redirect': { template: '    # no redirect\n' } };
    const engine = await libraryEngine({ config: config(snippets), defaultPem: PEM });
    const text = textsOf(renderAll(engine, snapshotOf(objects)))['haproxy.cfg'] ?? '';
    expect(text.split('    # no redirect\n')).toHaveLength(3);
    expect(text).not.toContain('http-request redirect');
  });

  test('print their snippets in the order of their names', async () => {
    const snippets = {
      'global-600-b': { template: '    # second\n' },
      'global-400-z': { template: '    # first\n' },
    };
    const engine = await libraryEngine({ config: config(snippets) });
    const text = textsOf(renderAll(engine, snapshotOf(objects)))['haproxy.cfg'] ?? '';
    const [first, own, second] = ['# first', 'ssl-default-bind-options', '# second'].map((word) =>
      text.indexOf(word),
    );
    expect(first).toBeGreaterThan(0);
    expect(own).toBeGreaterThan(first ?? 0);
    expect(second).toBeGreaterThan(own ?? 0);
  });
});

const isHeader = (line: string): boolean => /^[a-z]/.test(line);

const WHOLE_SECTIONS = ['sections', 'frontends', 'backends'];

interface PlaceOfHook {
  /** Head of the section it stands in, or behind. */
  readonly in: readonly string[];
  readonly behind?: RegExp;
  readonly before?: RegExp;
}

const HTTP = 'frontend haptic-http from haptic-frontend';
const HTTPS = 'frontend haptic-https from haptic-frontend';

const PLACES: Readonly<Record<string, PlaceOfHook>> = {
  global: { in: ['global'], before: /^$/ },
  defaults: { in: ['defaults haptic-base', 'defaults haptic-route'], before: /^$/ },
  sections: { in: ['defaults haptic-frontend from haptic-base'], before: /^frontend haptic-stats/ },
  stats: { in: ['frontend haptic-stats from haptic-base'], before: /return status 404/ },
  'frontend-http': { in: [HTTP], behind: /^ {4}bind / },
  'frontend-https': { in: [HTTPS], behind: /^ {4}bind .* ssl / },
  request: { in: [HTTP, HTTPS], behind: /set-var\(txn\.host\)/ },
  routing: { in: [HTTP, HTTPS], behind: /set-var\(txn\.backend\) .*host-default\.map/ },
  routed: { in: [HTTP, HTTPS], before: /return status 404 .*!{ var\(txn\.backend\) -m found }$/ },
  response: { in: [HTTP, HTTPS], behind: /return status 404/, before: /^ {4}use_backend/ },
  frontends: { in: [HTTPS], before: /^backend haptic-unavailable/ },
  profile: { in: ['defaults haptic-route'], before: /^$/ },
  backend: { in: ['backend default_web_80 from haptic-route'], before: /^ {4}server / },
  backends: { in: ['backend default_web_80 from haptic-route'], before: /^$/ },
};

/** Shared rules stand in both frontends. */
const times = (hook: string): number =>
  ['request', 'routing', 'routed', 'response'].includes(hook) ? 2 : 1;

const PEM = ['CERTIFICATE', 'PRIVATE KEY']
  .map((what) => `-----BEGIN ${what}-----\nAAAA\n-----END ${what}-----\n`)
  .join('');
