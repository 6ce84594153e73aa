import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Endpoints of each Service of the bench. */
export const ENDPOINTS = 5;

const namespaceOf = (index: number): string => `team-${String(index % 50)}`;

/** One application: an Ingress with a host of its own, its Service and one EndpointSlice. */
export const application = (
  name: string,
  namespace: string,
  ports: readonly number[],
): readonly object[] => [
  ingress(name, namespace),
  service(name, namespace),
  slice(name, namespace, ports),
];

export const ingress = (name: string, namespace: string): object => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  metadata: { name, namespace },
  spec: {
    ingressClassName: 'haptic',
    rules: [
      {
        host: `${name}.example.test`,
        http: {
          paths: [
            { path: '/', pathType: 'Prefix', backend: { service: { name, port: { number: 80 } } } },
          ],
        },
      },
    ],
  },
});

export const service = (name: string, namespace: string): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace },
  spec: { selector: { app: name }, ports: [{ name: 'http', port: 80, targetPort: 8080 }] },
});

/** All endpoints on loopback: only the ones of the measured applications ever get a request. */
export const slice = (name: string, namespace: string, ports: readonly number[]): object => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: {
    name: `${name}-1`,
    namespace,
    labels: { 'kubernetes.io/service-name': name },
  },
  addressType: 'IPv4',
  ports: ports.length === 0 ? [] : [{ name: 'http', port: ports[0], protocol: 'TCP' }],
  endpoints: Array.from({ length: ENDPOINTS }, (_, index) => ({
    addresses: [`127.0.0.${String(index + 1)}`],
    conditions: { ready: true },
    targetRef: { kind: 'Pod', name: `${name}-${String(index)}`, namespace },
  })),
});

const list = (items: readonly object[]): string =>
  `${JSON.stringify({ apiVersion: 'v1', kind: 'List', items })}\n`;

/** Windows of zero for every resource: the bench measures work, not waiting. */
const NO_WINDOWS = {
  apiVersion: 'haproxy-haptic.org/v1alpha1',
  kind: 'HAProxyTemplateConfig',
  metadata: { name: 'bench', namespace: 'default' },
  spec: {
    watchedResources: Object.fromEntries(
      ['ingresses', 'services', 'endpointslices', 'secrets', 'ingressclasses'].map((name) => [
        name,
        { debounceInterval: '0' },
      ]),
    ),
  },
};

/** Writes N applications; the ones that change have files of their own (`hot-…`). */
export const writeWorld = async (directory: string, count: number): Promise<void> => {
  await mkdir(directory, { recursive: true });
  const items = Array.from({ length: count }, (_, index) =>
    application(`app-${String(index)}`, namespaceOf(index), [9]),
  );
  await writeFile(join(directory, 'config.json'), JSON.stringify(NO_WINDOWS));
  for (let from = 0; from < items.length; from += 1_000) {
    const part = items.slice(from, from + 1_000).flat();
    await writeFile(join(directory, `apps-${String(from)}.json`), list(part));
  }
};

/** Replaces a file at once, as editors and tools do. */
export const writeList = async (
  directory: string,
  name: string,
  items: readonly object[],
): Promise<void> => {
  const staged = join(directory, `.${name}.new`);
  await writeFile(staged, list(items));
  await rename(staged, join(directory, name));
};
