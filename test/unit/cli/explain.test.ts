import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ingress, service, slice } from '../../support/objects.ts';
import { haptic, type Printed } from '../../support/terminal.ts';

const WEB = [
  service('web'),
  slice('web', { endpoints: ['10.0.0.1'] }),
  ingress('web', { rules: [['shop.example.com', '/', 'web:80']] }),
  ingress('lost', { rules: [['lost.example.com', '/', 'nothing:80']] }),
  { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { namespace: 'default', name: 'web' } },
];

/** `haptic explain` of a directory with these objects. */
const explain = (objects: readonly object[], ...words: readonly string[]): Promise<Printed> => {
  const path = mkdtempSync(join(tmpdir(), 'he-'));
  onTestFinished(() => {
    rmSync(path, { recursive: true, force: true });
  });
  writeFileSync(join(path, 'all.yaml'), objects.map((one) => JSON.stringify(one)).join('\n---\n'));
  return haptic(['explain', path, '--haproxy-version', '3.4', ...words]);
};

describe('haptic explain', () => {
  it('tells what made a line, as text and as JSON', async () => {
    const words = ['--file', 'maps/path-prefix.map', '--line', '2'];
    const text = await explain(WEB, ...words);
    expect(text).toMatchObject({ status: 0, err: '' });
    expect(text.out).toMatch(
      /^maps\/path-prefix\.map:2\n {2}shop\.example\.com\/ default_web_80\nprinted by {3}libraries\/ingress: hosts\.map\.njk:\d+\nmade for {5}Ingress\/default\/web\n$/,
    );
    const json = await explain(WEB, ...words, '--output', 'json');
    expect(JSON.parse(json.out)).toStrictEqual({
      ...{ file: 'maps/path-prefix.map', line: 2, text: 'shop.example.com/ default_web_80' },
      printedBy: [
        { template: 'libraries/ingress: hosts.map.njk', line: expect.any(Number) as number },
      ],
      objects: [
        {
          role: 'made',
          object: expect.objectContaining({ kind: 'Ingress', name: 'web' }) as object,
        },
      ],
    });
  });

  it('tells what an object made and what is wrong with it', async () => {
    const { status, out, err } = await explain(WEB, '--object', 'Ingress/default/lost');
    expect({ status, err }).toStrictEqual({ status: 0, err: '' });
    expect(out).toMatch(/^Ingress\/default\/lost\nerror: .*ServiceNotFound: /);
    expect(out).toContain('\nmaps/hosts.map:1\n');
  });

  it('spells out what a terminal would take for an order', async () => {
    const config = {
      apiVersion: 'haproxy-haptic.org/v1alpha1',
      kind: 'HAProxyTemplateConfig',
      metadata: { name: 'haptic' },
      spec: {
        watchedResources: {
          configmaps: { apiVersions: ['v1'], resources: 'configmaps', indexBy: ['metadata.name'] },
        },
        files: {
          'page.txt': {
            template:
              '{% cells one in resources.configmaps.list() key one.metadata.name %}\u001b[2J{{ one.data.text | text }}\n{% endcells %}',
          },
        },
      },
    };
    const data = { text: 'a\u202eb' };
    const page = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'a', name: 'b' } };
    const objects = [config, { ...page, data }];
    const line = await explain(objects, '--file', 'general/page.txt', '--line', '1');
    const object = await explain(objects, '--object', 'ConfigMap/a/b');
    for (const { status, out, err } of [line, object]) {
      expect({ status, err }).toStrictEqual({ status: 0, err: '' });
      expect(out).toContain('  \\u001b[2Ja\\u202eb\n');
    }
  });

  it('tells of an object that nobody watches', async () => {
    const { status, out } = await explain(WEB, '--object', 'Deployment/default/web');
    expect(status).toBe(0);
    expect(out).toMatch(
      /^Deployment\/default\/web\nwarning: .*KindNotWatched: .*\nIt made nothing\./,
    );
  });

  it('fails with status 1 for what does not exist, and names the nearest', async () => {
    expect(await explain(WEB, '--object', 'Ingress/default/wep')).toStrictEqual({
      status: 1,
      out: '',
      err: 'haptic explain: there is no object Ingress/default/wep; did you mean Ingress/default/web?\n',
    });
    const { status, err } = await explain(WEB, '--file', 'haproxy.cfg', '--line', '9999');
    expect(status).toBe(1);
    expect(err).toMatch(/haproxy\.cfg has lines 1 to \d+, so there is no line 9999\n$/);
  });

  it('fails with status 1 when nothing renders, and tells why', async () => {
    const wrong = {
      apiVersion: 'haproxy-haptic.org/v1alpha1',
      kind: 'HAProxyTemplateConfig',
      metadata: { name: 'haptic' },
      spec: { mapps: {} },
    };
    const words = ['--file', 'haproxy.cfg', '--line', '1'];
    const { status, out, err } = await explain([wrong], ...words);
    expect({ status, out }).toStrictEqual({ status: 1, out: '' });
    expect(err).toContain('spec.mapps');
    const json = await explain([wrong], ...words, '--output', 'json');
    expect(json).toMatchObject({ status: 1, err: '' });
    expect(JSON.parse(json.out)).toMatchObject({ problems: [{ severity: 'error' }] });
  });

  it.each([
    [['--file', 'haproxy.cfg'], 'needs --file and --line, or --object'],
    [['--file', 'haproxy.cfg', '--line', '0'], '--line takes the number of a line'],
    [['--object', 'Ingress/a/b', '--line', '1'], 'takes either --object, or --file and --line'],
  ])('cannot run with %j', async (words, message) => {
    const { status, out, err } = await explain(WEB, ...words);
    expect({ status, out }).toStrictEqual({ status: 2, out: '' });
    expect(err).toContain(message);
  });
});
