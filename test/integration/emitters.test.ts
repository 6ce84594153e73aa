import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { EMITTERS, MAX_VALUE } from '../../src/render/language/emitters.ts';
import type { Render } from '../../src/render/render.ts';
import { freePort, haproxyVersions, runtimeCommand, startHaproxy } from '../support/haproxy.ts';
import {
  EMPTY_SNAPSHOT,
  backendModel,
  engineOf,
  renderOf,
  server,
  textOf,
} from '../support/templates.ts';
import { PersistentMap } from '../../src/cells/persistent-map.ts';

const CASES = 150;

/** Strings that hurt, and strings made of characters that HAProxy gives a meaning to. */
const nasty = [
  ...[
    '%',
    '%%',
    '%[env(HOME)]',
    '%{+Q}r',
    '"',
    "'",
    '\\',
    '\\\\',
    "\\'",
    '#',
    'a#b',
    '$HOME',
    '${HOME}',
  ],
  ...[
    '"$HOME"',
    'a b',
    ' a',
    'a ',
    '}',
    '{',
    '-f',
    '-i x',
    '||',
    'if',
    '!',
    '*',
    'a;b',
    'ünïcödé',
    '日本',
    '😀',
  ],
  ...['constructor', '__proto__', '[*]', '(', ')', ',', 'a,lower', '\u00a0', 'x'.repeat(MAX_VALUE)],
];
const character = fc.oneof(
  fc.constantFrom(...Array.from('%"\'\\#$ {}[]()-,;!|~`a1é日😀')),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
);
const value = fc.string({ unit: character, minLength: 1, maxLength: 30 });

const accepted = (name: string): string[] => {
  const random = fc.sample(value, { numRuns: CASES, seed: 7 });
  return [...new Set([...nasty, ...random])].filter((one) => EMITTERS[name]?.(one).ok === true);
};

const VALUES = Object.fromEntries(Object.keys(EMITTERS).map((name) => [name, accepted(name)]));
const valuesOf = (name: string): readonly string[] => VALUES[name] ?? [];
/** Each is matched literally. */
const MATCHED = accepted('quoted').filter((one) => one.length < 2000);

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

const MAIN = `global
    default-path origin {{ extraContext.dir | token }}
defaults base
    mode http
    timeout client 5s
    timeout server 5s
    timeout connect 5s
{{ profile({ name: "haptic", body: "    option redispatch\\n" }) }}
{% cells b in routes.backends %}
{{ backend({ name: b.name, mode: b.mode, profile: "haptic", servers: b.servers }) }}
{% endcells %}
frontend main from base
    bind 127.0.0.1:{{ extraContext.port }}
    http-request set-var(txn.v) url_param(v),url_dec
{% for v in extraContext.values.quoted %}
    http-request return status 200 content-type text/plain string {{ v | quoted }} if { path -m str /quoted/{{ loop.index0 }} }
{% endfor %}
{% for v in extraContext.values.token %}
    http-request return status 200 content-type text/plain string {{ v | token }} if { path -m str /token/{{ loop.index0 }} }
{% endfor %}
{% for v in extraContext.values.logFormat %}
    http-request return status 200 content-type text/plain lf-string {{ v | logFormat }} if { path -m str /logFormat/{{ loop.index0 }} }
{% endfor %}
{% for v in extraContext.values.header %}
    http-request return status 200 hdr x-value {{ v | header }} if { path -m str /header/{{ loop.index0 }} }
{% endfor %}
{% for v in extraContext.values.aclPattern %}
    http-request return status 200 if { path -m str /aclPattern/{{ loop.index0 }} } { var(txn.v) -m str {{ v | aclPattern }} }
{% endfor %}
{% for v in extraContext.regexes %}
    http-request return status 200 if { path -m str /regex/{{ loop.index0 }} } { var(txn.v) -m reg {{ v | regex }} }
{% endfor %}
{% for v in extraContext.values.comment %}
    # {{ v | comment }}
{% endfor %}
    http-request return status 404 content-type text/plain lf-string %[path,map_str({{ path("all.map", "map") }})]
`;

const MAP = `{% for v in extraContext.values.mapKey %}
{{ map_entry(v, "key-" ~ loop.index0) }}
{% endfor %}
{% for v in extraContext.values.mapValue %}
{{ map_entry("value-" ~ loop.index0, v) }}
{% endfor %}
`;

/** Letters, digits and what else HAProxy allows in names. */
const NAMES = ['a', 'ns_app-1.x_80', 'A:b', 'x'.repeat(127)];

const write = (dir: string, render: Render): void => {
  for (const path of render.files.keys()) {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), textOf(render, path));
  }
};

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly header: string;
}

const get = (port: number, path: string): Promise<Answer> =>
  new Promise((resolve, reject) => {
    request({ port, path, host: '127.0.0.1' }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('end', () => {
        const header = Buffer.from(String(response.headers['x-value'] ?? ''), 'latin1').toString();
        resolve({
          status: response.statusCode ?? 0,
          body: Buffer.concat(parts).toString(),
          header,
        });
      });
    })
      .on('error', reject)
      .end();
  });

describe.each(haproxyVersions())(
  'HAProxy $version reports what an emitter was given (P9)',
  ({ binary }) => {
    const dir = mkdtempSync(join(tmpdir(), 'emitters-'));
    afterAll(() => rmSync(dir, { recursive: true, force: true }));

    const start = async () => {
      const port = await freePort();
      const models = NAMES.map((name) => backendModel(name, [server(name, '127.0.0.1', 1)]));
      const backends = PersistentMap.from(models.map((model) => [model.name, model]));
      const regexes = MATCHED.map((one) => `^${escaped(one)}$`);
      const extraContext = { dir, port, values: VALUES, regexes };
      const parts = { main: MAIN, maps: { 'all.map': MAP }, extraContext };
      const engine = engineOf(parts, () => ({ hosts: PersistentMap.EMPTY, backends }));
      write(dir, renderOf(engine, EMPTY_SNAPSHOT));
      const running = await startHaproxy({ binary, dir, configFile: 'haproxy.cfg' });
      return { port, running };
    };

    const checkWords = async (port: number): Promise<void> => {
      for (const name of ['quoted', 'token', 'logFormat']) {
        for (const [index, text] of valuesOf(name).entries()) {
          expect([name, (await get(port, `/${name}/${index}`)).body]).toEqual([name, text]);
        }
      }
      for (const [index, text] of valuesOf('header').entries()) {
        expect((await get(port, `/header/${index}`)).header).toBe(text);
      }
    };

    const checkPatterns = async (
      port: number,
      name: string,
      texts: readonly string[],
    ): Promise<void> => {
      for (const [index, text] of texts.entries()) {
        if (text.length > 2000) continue; // longer than a request line may be
        const path = `/${name}/${index}?v=${encodeURIComponent(text)}`;
        expect([name, text, (await get(port, path)).status]).toEqual([name, text, 200]);
        expect((await get(port, `${path}x`)).status).toBe(404);
      }
    };

    const checkMap = async (socket: string): Promise<void> => {
      const shown = (await runtimeCommand(socket, 'show map maps/all.map'))
        .split('\n')
        .map((line) => line.replace(/^0x[0-9a-f]+ /, ''));
      const wanted = [
        ...valuesOf('mapKey').map((key, index) => `${key} key-${index}`),
        ...valuesOf('mapValue').map((text, index) => `value-${index} ${text}`),
      ];
      expect(shown.sort()).toEqual(wanted.sort());
    };

    test('words, log formats, headers, patterns, map entries and names come back unchanged', async () => {
      const { port, running } = await start();
      await checkWords(port);
      await checkPatterns(port, 'aclPattern', valuesOf('aclPattern'));
      await checkPatterns(port, 'regex', MATCHED);
      await checkMap(running.workerSocket);
      const stat = await runtimeCommand(running.workerSocket, 'show stat');
      for (const name of NAMES) expect(stat).toContain(`\n${name},${name},`);
      await running.stop();
    });
  },
);
