import type { KubeObject } from '../snapshot/objects.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';

/** Where HAProxy listens. */
export interface Listeners {
  readonly httpPort: number;
  readonly httpsPort: number;
}

const MOST = 6;

/** Ready-to-paste `curl` lines for the hosts of the Ingresses, at most six, sorted by host. */
export const curlLines = (snapshot: Snapshot, listeners: Listeners): readonly string[] => {
  if (!snapshot.resources.includes('ingresses')) return [];
  const lines = snapshot
    .store('ingresses')
    .list()
    .flatMap((ingress) => linesOf(ingress, listeners));
  return [...new Set(lines)].sort().slice(0, MOST);
};

/** What may stand in a shell line: everything else is left out, for names come from anybody. */
const SAFE_HOST = /^[a-z0-9.-]{1,253}$/;
const SAFE_PATH = /^\/[A-Za-z0-9._~/-]{0,200}$/;

const linesOf = (ingress: KubeObject, { httpPort, httpsPort }: Listeners): readonly string[] => {
  const spec = record(ingress['spec']);
  const secure = new Set(
    list(spec['tls']).flatMap((entry) => list(record(entry)['hosts']).filter(isText)),
  );
  return list(spec['rules']).flatMap((rule) => {
    const { host, http } = record(rule);
    const [first] = list(record(http)['paths']);
    const { path } = record(first);
    const name = isText(host) ? host.replace(/^\*\./, 'any.') : 'localhost';
    const at = isText(path) && SAFE_PATH.test(path) ? path : '/';
    if (!SAFE_HOST.test(name)) return [];
    return secure.has(isText(host) ? host : '')
      ? [`curl -k ${target('https', name, httpsPort)}${at}`]
      : [`curl ${target('http', name, httpPort)}${at}`];
  });
};

const target = (scheme: string, name: string, port: number): string => {
  const url = `${scheme}://${name}:${String(port)}`;
  const resolves = name === 'localhost' || name.endsWith('.localhost');
  return resolves ? url : `--resolve ${name}:${String(port)}:127.0.0.1 ${url}`;
};

const isText = (value: unknown): value is string => typeof value === 'string';
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const record = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
