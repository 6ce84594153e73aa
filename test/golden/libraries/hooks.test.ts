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

/** Shared rules stand in both frontends. */
const times = (hook: string): number =>
  ['request', 'routing', 'routed', 'response'].includes(hook) ? 2 : 1;

const PEM = ['CERTIFICATE', 'PRIVATE KEY']
  .map((what) => `-----BEGIN ${what}-----\nAAAA\n-----END ${what}-----\n`)
  .join('');
