import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../src/snapshot/objects.ts';
import { yamlDocuments } from '../../../src/streams/yaml-documents.ts';
import { startEcho, type EchoBackend } from '../../support/echo.ts';
import { haproxyVersions, runtimeCommand, waitFor } from '../../support/haproxy.ts';
import { makeKeyPair, type TestKeyPair } from '../../support/key-pairs.ts';
import { ingress, service, slice } from '../../support/objects.ts';
import { startProxied, type Proxied } from '../../support/proxied.ts';

const PAGE = readFileSync(new URL('../../../docs/hooks.md', import.meta.url), 'utf8');
const HOOKS = [...PAGE.matchAll(/^\| `([a-z-]+)` +\| \w+/gm)].map(([, hook = '']) => hook);

type Snippets = Readonly<Record<string, { readonly template: string }>>;

const configWith = (templateSnippets: Snippets): KubeObject => ({
  apiVersion: 'haproxy-haptic.org/v1alpha1',
  kind: 'HAProxyTemplateConfig',
  metadata: { namespace: 'default', name: 'haptic' },
  spec: { templateSnippets },
});

/** Something of the kind that the page allows in each hook, with an effect where it can be seen. */
const LINES: Readonly<Record<string, string>> = {
  global: '    tune.bufsize 32768\n',
  defaults: '    timeout client-hs 7s\n',
  sections: 'userlist people\n    user ada insecure-password secret\n',
  stats:
    '    http-request return status 200 content-type text/plain string stats if { path /hook }\n',
  'frontend-http': '    http-request set-header X-Http yes\n',
  'frontend-https': '    http-request set-header X-Https yes\n',
  request:
    '    acl is_admin path_beg /admin\n    http-request deny deny_status 403 if is_admin !{ http_auth(people) }\n',
  routing:
    '    http-request set-var(txn.backend) str(legacy) if !{ var(txn.backend) -m found } { var(txn.host) -m str legacy.example.com }\n',
  routed: '    http-request set-header X-Routed %[var(txn.backend)]\n',
  response: '    http-after-response set-header Location /hook if { status 404 }\n',
  frontends:
    'frontend mine from haptic-frontend\n    bind unix@mine.sock\n    default_backend legacy\n',
  profile: '    timeout check 3s\n',
  backend: '    http-request set-header X-Backend {{ route.object.name | header }}\n',
  backends:
    'backend legacy from haptic-base\n    http-request return status 200 content-type text/plain string legacy\n',
};

let echo: EchoBackend;
let pair: TestKeyPair;

beforeAll(async () => {
  [echo, pair] = await Promise.all([startEcho('web'), makeKeyPair(['default.invalid'])]);
});

afterAll(async () => {
  await echo.stop();
});

const objects = (): KubeObject[] => [
  ingress('web', { rules: [['a.example.com', '/', 'web:80']] }),
  service('web'),
  slice('web', { endpoints: ['127.0.0.1'], ports: { '': echo.port } }),
];

/** HAProxy with a configuration, and the objects above. */
const serving = async (binary: string, config: KubeObject): Promise<Proxied> => {
  const proxied = await startProxied(binary, pair, config);
  await proxied.serve(objects());
  return proxied;
};

describe.each(haproxyVersions())('hooks on HAProxy $version', ({ binary }) => {
  test('S24: what stands in each of them is accepted, and has an effect', async () => {
    expect(Object.keys(LINES).sort()).toStrictEqual(HOOKS.toSorted());
    const snippets = HOOKS.map((hook) => [`${hook}-600-mine`, { template: LINES[hook] ?? '' }]);
    const proxied = await serving(binary, configWith(Object.fromEntries(snippets) as Snippets));
    const get = async (scheme: 'http' | 'https', host: string, path: string) =>
      proxied.get({ scheme, host, path });
    const http = await get('http', 'a.example.com', '/');
    expect(http.echo?.headers).toMatchObject({
      ...{ 'x-http': 'yes', 'x-routed': 'default_web_80', 'x-backend': 'web' },
    });
    expect(http.echo?.headers['x-https']).toBeUndefined();
    const https = await get('https', 'a.example.com', '/');
    expect(https.echo?.headers).toMatchObject({ 'x-https': 'yes', 'x-routed': 'default_web_80' });
    expect((await get('http', 'a.example.com', '/admin')).status).toBe(403);
    expect((await get('http', 'legacy.example.com', '/')).body).toBe('legacy');
    const unknown = await get('http', 'b.example.com', '/');
    expect(unknown).toMatchObject({ status: 404, location: '/hook' });
    const stats = await fetch(`http://127.0.0.1:${proxied.statsPort}/hook`);
    expect(await stats.text()).toBe('stats');
    await proxied.stop();
  });

  test('S24: the examples of docs/hooks.md do what it says', async () => {
    const blocks = [...PAGE.matchAll(/```yaml\n(.*?)```/gs)].map(([, block = '']) => block);
    const [whole, fragment] = blocks.map((block) => {
      const read = yamlDocuments(block);
      if (!read.ok) throw new Error(read.error.reason);
      return read.documents[0];
    });
    const spec = (whole as { spec: { templateSnippets: Snippets } }).spec;
    const proxied = await serving(
      binary,
      configWith({ ...spec.templateSnippets, ...(fragment as Snippets) }),
    );
    const ask = (host: string, path: string) => proxied.get({ scheme: 'http', host, path });
    expect((await ask('a.example.com', '/admin')).status).toBe(403);
    expect((await ask('a.example.com', '/')).echo?.name).toBe('web');
    // Nobody answers at 192.0.2.1: that the request waits there is what can be seen.
    const waiting = ask('a.example.com', '/legacy/x').catch(() => undefined);
    await waitFor(
      async () => {
        const stat = await runtimeCommand(proxied.haproxy.workerSocket, 'show stat legacy 2 -1');
        return /^legacy,BACKEND,(?:[^,]*,){2}1,/m.test(stat);
      },
      { what: 'the request to reach the backend' },
    );
    await proxied.stop();
    await waiting;
  });
});
