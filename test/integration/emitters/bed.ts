/** A real HAProxy whose configuration holds what emitters made of many values, and what it can be asked about them. */
import { createSocket } from 'node:dgram';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { PersistentMap } from '../../../src/cells/persistent-map.ts';
import type { Render } from '../../../src/render/render.ts';
import { freePort, startHaproxy, type RunningHaproxy } from '../../support/haproxy.ts';
import {
  EMPTY_SNAPSHOT,
  backendModel,
  engineOf,
  renderOf,
  server,
  textOf,
} from '../../support/templates.ts';
import type { TestKeyPair } from '../../support/key-pairs.ts';
import { NAMES, PATHS, REGEXES, acceptedBy } from './values.ts';

const rules = (emitter: string, rule: string): string =>
  `{% for v in extraContext.values.${emitter} %}
    http-request ${rule} if { path -m str /${emitter}/{{ loop.index0 }} }
{% endfor %}
`;

const matches = (name: string, list: string, pattern: string): string =>
  `{% for v in extraContext.${list} %}
    http-request return status 200 if { path -m str /${name}/{{ loop.index0 }} } { var(txn.v) ${pattern} }
{% endfor %}
`;

const PLAIN = 'return status 200 content-type text/plain';

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
    bind 127.0.0.1:{{ extraContext.port }} ssl crt {{ path("own", "cert") }}
    bind unix@main.sock
    http-request set-var(txn.v) url_param(v),url_dec
${rules('quoted', `${PLAIN} string {{ v | quoted }}`)}
${rules('token', `${PLAIN} string {{ v | token }}`)}
${rules('logFormat', `${PLAIN} lf-string {{ v | logFormat }}`)}
${rules('header', 'return status 200 hdr x-value {{ v | header }}')}
${matches('aclPattern', 'values.aclPattern', '-m str {{ v | aclPattern }}')}
${matches('literal', 'literals', '-m reg {{ v | regex }}')}
${matches('regex', 'regexes', '-m reg {{ v | regex }}')}
{% for v in extraContext.values.comment %}
    # {{ v | comment }}
    http-request return status 200 if { path -m str /comment/{{ loop.index0 }} } # {{ v | comment }}
{% endfor %}
{% for p in extraContext.paths %}
    http-request ${PLAIN} file {{ p | path }} if { path -m str /path/{{ loop.index0 }} }
{% endfor %}
    http-request ${PLAIN} file {{ path("texts", "file") }} if { path /texts }
    http-request ${PLAIN} lf-string %[var(txn.v),map_str({{ path("all.map", "map") }})] if { path /map }
${rules('sent', 'set-header x-value {{ v | header }}').replace('values.sent', 'values.header')}
    default_backend echo
backend echo from base
    server echo 127.0.0.1:{{ extraContext.echoPort }}
{% for line in extraContext.lines %}
{% set number = loop.index0 %}
frontend log-{{ number }} from base
    bind unix@log-{{ number }}.sock
    log 127.0.0.1:{{ extraContext.logPort }} len 65535 format raw local0
    log-format {{ number }}:{% for v in line %}{{ v | logFormat }}"<{{ loop.index0 }}>"{% endfor %}

    http-request return status 200
{% endfor %}
`;

const MAP = `{% for v in extraContext.values.mapKey %}
{{ map_entry(v, "key-" ~ loop.index0) }}
{% endfor %}
{% for v in extraContext.values.mapValue %}
{{ map_entry("value-" ~ loop.index0, v) }}
{% endfor %}
`;

export interface Answer {
  readonly status: number;
  readonly body: string;
  /** Value of the header `x-value`. */
  readonly header: string;
}

/** Everything the tests need of one running HAProxy. */
export interface Bed {
  readonly haproxy: RunningHaproxy;
  readonly values: Readonly<Record<string, readonly string[]>>;
  /** Strings that are matched as regular expressions without special characters. */
  readonly matched: readonly string[];
  /** Groups of values that are written as one log line each. */
  readonly lines: readonly (readonly string[])[];
  /** Content of the file with free text. */
  readonly texts: string;
  readonly get: (path: string, socket?: string) => Promise<Answer>;
  /** Log lines that have come so far. */
  readonly logged: () => readonly string[];
  readonly stop: () => Promise<void>;
}

const EMITTERS = ['quoted', 'token', 'logFormat', 'header', 'aclPattern', 'comment', 'mapKey'];
const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

/** Groups whose log line HAProxy can write. */
const grouped = (values: readonly string[]): string[][] => {
  const groups: string[][] = [[]];
  let size = 0;
  for (const one of values) {
    size += Buffer.byteLength(one) * 2 + 10;
    if (size > 12_000 && groups.at(-1)?.length !== 0) {
      groups.push([]);
      size = Buffer.byteLength(one) * 2 + 10;
    }
    groups.at(-1)?.push(one);
  }
  return groups;
};

const write = (dir: string, render: Render): void => {
  for (const path of render.files.keys()) put(join(dir, path), textOf(render, path));
  for (const [index, path] of PATHS.entries()) put(join(dir, path), `content ${String(index)}`);
};

const put = (path: string, content: string): void => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
};

const utf8 = (value: string | string[] = ''): string =>
  Buffer.from([value].flat().join(), 'latin1').toString();

const startEcho = async () => {
  const echo = createServer((incoming, response) =>
    response.end(utf8(incoming.headers['x-value'])),
  );
  await new Promise<void>((done) => echo.listen(0, '127.0.0.1', done));
  return echo;
};

const startLog = async () => {
  const lines: string[] = [];
  const log = createSocket('udp4').on('message', (line) => lines.push(line.toString()));
  await new Promise<void>((done) => log.bind(0, '127.0.0.1', done));
  return { log, lines };
};

/** Starts HAProxy with the values in all places that there are. */
export const startBed = async (binary: string, pair: TestKeyPair): Promise<Bed> => {
  const dir = mkdtempSync(join(tmpdir(), 'emit-'));
  const [echo, { log, lines: logged }, port] = [
    await startEcho(),
    await startLog(),
    await freePort(),
  ];
  const values = Object.fromEntries(
    [...EMITTERS, 'mapValue'].map((name) => [name, acceptedBy(name)] as const),
  );
  // HAProxy answers with a file that fits its buffer.
  const [texts = []] = grouped(acceptedBy('text').filter((one) => one.length < 1000));
  const matched = acceptedBy('quoted').filter((one) => Buffer.byteLength(one) < 2000);
  const lines = grouped(values['logFormat'] ?? []);
  const models = NAMES.map((name) => backendModel(name, [server(name, '127.0.0.1', 1)]));
  const backends = PersistentMap.from(models.map((model) => [model.name, model]));
  const extraContext = {
    ...{ dir, port, values, lines, texts, paths: PATHS, pem: `${pair.certificate}\n${pair.key}` },
    ...{ echoPort: (echo.address() as AddressInfo).port, logPort: log.address().port },
    ...{
      literals: matched.map((one) => `^${escaped(one)}$`),
      regexes: REGEXES.map(([one]) => one),
    },
  };
  const engine = engineOf(
    {
      ...{ main: MAIN, maps: { 'all.map': MAP }, extraContext },
      files: { texts: '{% for v in extraContext.texts %}{{ v | text }}|{% endfor %}' },
      certificates: { own: '{{ extraContext.pem | pem }}' },
    },
    () => ({ hosts: PersistentMap.EMPTY, backends }),
  );
  write(dir, renderOf(engine, EMPTY_SNAPSHOT));
  const haproxy = await startHaproxy({ binary, dir, configFile: 'haproxy.cfg' });
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  return {
    ...{ haproxy, values, matched, lines, logged: () => logged },
    texts: texts.map((one) => `${one}|`).join(''),
    get: (path, socket = 'main.sock') => get({ agent, path, socketPath: join(dir, socket) }),
    stop: async () => {
      agent.destroy();
      await haproxy.stop();
      echo.close();
      log.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
};

const get = (options: { agent: Agent; path: string; socketPath: string }): Promise<Answer> =>
  new Promise((resolve, reject) => {
    request(options, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('end', () => {
        resolve({
          status: response.statusCode ?? 0,
          body: Buffer.concat(parts).toString(),
          header: utf8(response.headers['x-value']),
        });
      });
    })
      .on('error', reject)
      .end();
  });
