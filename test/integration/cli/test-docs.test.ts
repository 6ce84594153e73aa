/** What docs/templates.md says about tests in the configuration is what happens. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { haproxyVersions } from '../../support/haproxy.ts';
import { haptic } from '../../support/terminal.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const EXAMPLE = join(ROOT, 'examples', 'configuration-tests');
const [SECTION = ''] =
  /^## Tests in the configuration\n.*?(?=^## |$(?![\s\S]))/ms.exec(
    readFileSync(join(ROOT, 'docs', 'templates.md'), 'utf8'),
  ) ?? [];
const [{ binary: newest } = { binary: '' }] = haproxyVersions().slice(-1);

const blocks = (language: string): readonly string[] =>
  [...SECTION.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(
    ([, text = '']) => text,
  );

const directory = (): string => {
  const path = mkdtempSync(join(tmpdir(), 'hd-'));
  onTestFinished(() => {
    rmSync(path, { recursive: true, force: true });
  });
  return path;
};

/** Times and versions differ from run to run. */
const masked = (text: string): string =>
  text.replaceAll(/\(\d+(?:\.\d)? m?s\)/g, '(… ms)').replaceAll(/HAProxy 3\.\d+\.\d+/g, 'HAProxy');

describe('docs/templates.md, tests in the configuration', () => {
  it('has an example that passes', async () => {
    const path = directory();
    const [spec = ''] = blocks('yaml');
    const head = [
      'apiVersion: haproxy-haptic.org/v1alpha1',
      'kind: HAProxyTemplateConfig',
      'metadata: { namespace: default, name: haptic }',
    ];
    writeFileSync(join(path, 'config.yaml'), [...head, spec].join('\n'));
    const { status, out } = await haptic(['test', path, '--haproxy', newest]);
    expect(out).toMatch(/^1 test on HAProxy .*: 1 passed/m);
    expect(status).toBe(0);
  });

  it('shows what the example of its own prints, passing and failing', async () => {
    const [passing = '', failing = ''] = blocks('console');
    const passed = await haptic(['test', EXAMPLE, '--haproxy', newest]);
    expect(masked(passed.out)).toBe(masked(passing.slice(passing.indexOf('\n') + 1)));
    const path = directory();
    cpSync(EXAMPLE, path, { recursive: true });
    const file = join(path, 'config.yaml');
    const config = readFileSync(file, 'utf8');
    expect(config).toContain(String.raw`'^shop\.example\.com '`);
    writeFileSync(
      file,
      config.replace(String.raw`^shop\.example\.com `, String.raw`^shop\.example\.org `),
    );
    const failed = await haptic(['test', path, '--haproxy', newest]);
    expect(masked(failed.out)).toContain(masked(failing));
    expect(failed.status).toBe(1);
  });

  it('names flags that exist, and all of the command', async () => {
    const { out } = await haptic(['test', '--help']);
    const named = new Set([...SECTION.matchAll(/(?<![\w-])--[a-z][\w-]*/g)].map(([flag]) => flag));
    expect(named.size).toBeGreaterThan(4);
    for (const flag of named) expect(out).toContain(`${flag} `);
    const own = ['--filter', '--junit', '--haproxy', '--timeout', '--memory', '--output'];
    expect(own.filter((flag) => !named.has(flag))).toStrictEqual([]);
  });
});
