import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ingress, service } from '../../support/objects.ts';
import type { Printed } from '../../support/terminal.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const EXAMPLE = join(ROOT, 'examples', 'extending');

/** The program as people start it. */
const explain = (...words: readonly string[]): Promise<Printed> =>
  promisify(execFile)(process.execPath, [join(ROOT, 'src/main.ts'), 'explain', ...words], {
    env: { PATH: process.env['PATH'] ?? '' },
  }).then(
    ({ stdout, stderr }) => ({ status: 0, out: stdout, err: stderr }),
    (error: unknown) => {
      const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
      return { status: code, out: stdout, err: stderr };
    },
  );

describe('haptic explain as a process', () => {
  it('R18: ends with 0 and tells what made a line, or what an object made', async () => {
    const line = await explain(EXAMPLE, '--file', 'maps/static-routes.map', '--line', '1');
    expect(line).toStrictEqual({
      status: 0,
      out: [
        'maps/static-routes.map:1',
        '  legacy.example.com static.default.legacy',
        'printed by   HAProxyTemplateConfig default/haptic: templateSnippets.backends-600-static-routes.template:9',
        'made for     StaticRoute/default/legacy',
        '',
      ].join('\n'),
      err: '',
    });
    const object = await explain(EXAMPLE, '--object', 'staticroute/default/legacy');
    expect(object).toMatchObject({ status: 0, err: '' });
    expect(object.out).toContain('  backend static.default.legacy from haptic-base\n');
  });

  it('R6 R18: tells why an object would be in quarantine, and what the others made', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'haptic-explain-'));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    const template = `{% cells one in resources.ingresses.list() key one.metadata.name %}
    # {{ one.metadata.annotations["example.com/size"] | to_int }}
{% endcells %}
`;
    const sized = (name: string, size: string) =>
      ingress(name, {
        rules: [[`${name}.example.com`, '/', 'web:80']],
        annotations: { 'example.com/size': size },
      });
    const config = {
      apiVersion: 'haproxy-haptic.org/v1alpha1',
      kind: 'HAProxyTemplateConfig',
      metadata: { namespace: 'default', name: 'haptic' },
      spec: { templateSnippets: { 'request-300-size': { template } } },
    };
    const objects = [config, service('web'), sized('good', '12345'), sized('bad', 'large')];
    const text = objects.map((object) => JSON.stringify(object)).join('\n---\n');
    writeFileSync(join(directory, 'all.yaml'), text);
    const bad = await explain(directory, '--object', 'Ingress/default/bad');
    expect(bad.status).toBe(0);
    expect(bad.out).toMatch(/Quarantined: It is left out, .*not a whole number/);
    expect(bad.out).toContain('It made nothing.');
    const good = await explain(directory, '--object', 'Ingress/default/good');
    expect(good.out).toContain('# 12345\n');
  });

  it('R18: ends with 1 for what does not exist, and with 2 for words that say nothing', async () => {
    const wrong = await explain(EXAMPLE, '--object', 'StaticRoute/default/legcy');
    expect(wrong).toStrictEqual({
      status: 1,
      out: '',
      err: 'haptic explain: there is no object StaticRoute/default/legcy; did you mean StaticRoute/default/legacy?\n',
    });
    expect(await explain('/nowhere', '--object', 'A/b/c')).toMatchObject({ status: 1, out: '' });
    expect(await explain(EXAMPLE)).toMatchObject({ status: 2, out: '' });
    const help = await explain('--help');
    expect(help).toMatchObject({ status: 0, err: '' });
    expect(help.out).toContain('--object KIND/NAMESPACE/NAME');
  });
});
