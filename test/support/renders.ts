/**
 * Renders for tests that need no templates: a configuration text, other files, and where lines come from.
 */
import { createHash } from 'node:crypto';
import { leaf } from '../../src/cells/chunk.ts';
import { merkleMap } from '../../src/plan/merkle-map.ts';
import type { DigestFunction, Plan } from '../../src/plan/plan.ts';
import type { FileKind } from '../../src/protocol/protocol.ts';
import type {
  ControllerSettings,
  DataplaneSettings,
  Provenance,
  Render,
  RenderedFile,
} from '../../src/render/render.ts';
import type { ObjectRef } from '../../src/snapshot/objects.ts';
import type { Snapshot } from '../../src/snapshot/snapshot.ts';

/** What {@link makeRender} makes a render of. */
export interface RenderParts {
  /** Text of `haproxy.cfg`. Default: a small configuration that every HAProxy accepts. */
  readonly config?: string;
  /** Other files by path. */
  readonly files?: Readonly<Record<string, string>>;
  /** By line of the configuration, counted from 1. */
  readonly provenance?: Readonly<Record<number, Provenance>>;
  /** Unchanged files share their text with it, as renders of the engine do. */
  readonly previous?: Render;
  /** Default: a digest of everything above. */
  readonly id?: string;
}

/** Settings as a fresh configuration has them. */
export const defaultSettings: DataplaneSettings = {
  port: 5555,
  minDeploymentIntervalMs: 5000,
  driftPreventionIntervalMs: 60_000,
  deploymentTimeoutMs: 30_000,
  configPublishIntervalMs: 10_000,
  baseDir: '/etc/haproxy',
  mapsDir: 'maps',
  sslCertsDir: 'certs',
  generalStorageDir: 'general',
  configFile: 'haproxy.cfg',
};

/** The same for the controller, of a configuration called `haptic`. */
export const defaultController: ControllerSettings = {
  leaderElection: {
    enabled: true,
    leaseName: 'haptic',
    leaseDurationMs: 30_000,
    renewDeadlineMs: 20_000,
    retryPeriodMs: 5_000,
  },
  configPublishing: { enabled: true, compressionThreshold: 2 ** 16 },
};

/** The head of a configuration that every HAProxy accepts; `rest` follows in a frontend section. */
export const configText = (rest = ''): string => `global
    default-path origin /etc/haproxy
defaults
    mode http
    timeout client 1s
    timeout server 1s
    timeout connect 1s
frontend main
    bind 127.0.0.1:8080
${rest}`;

/** Names an object as provenance does. */
export const ingressRef = (name: string, namespace = 'default'): ObjectRef => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  namespace,
  name,
  uid: `uid-of-${name}`,
});

/** A render with these files; its plan declares no structure. */
export function makeRender({
  config = configText(),
  files = {},
  provenance = {},
  previous,
  id,
}: RenderParts = {}): Render {
  const texts = { ...files, 'haproxy.cfg': config };
  const rendered = Object.entries(texts).map(([path, text]): RenderedFile => {
    const old = previous?.files.get(path);
    return old?.text.text === text ? old : { path, kind: kindOf(path), text: leaf(text) };
  });
  return {
    plan: planOf(config, id ?? sha256(JSON.stringify(texts))),
    snapshot: NO_OBJECTS,
    generation: 'test',
    haproxyVersion: '3.0',
    settings: defaultSettings,
    files: new Map(rendered.map((file) => [file.path, file])),
    problems: [],
    statuses: [],
    cells: { evaluated: 0, reused: 0, live: 0, reads: 0 },
    provenance: (line) => provenance[line],
    lines: () => [],
  };
}

const sha256: DigestFunction = (text) => createHash('sha256').update(text).digest('hex');

const NO_OBJECTS: Snapshot = {
  version: 1,
  changes: [],
  resources: [],
  store: (resource) => {
    throw new RangeError(`${resource} is not watched`);
  },
};

const planOf = (config: string, id: string): Plan => ({
  schemaVersion: 1,
  id,
  sections: [{ kind: 'core', name: 'all', digest: sha256(config) }],
  backends: merkleMap(sha256),
  profiles: merkleMap(sha256),
  maps: merkleMap(sha256),
  files: merkleMap(sha256),
  crtLists: merkleMap(sha256),
  config: { path: 'haproxy.cfg', digest: sha256(config), size: Buffer.byteLength(config) },
});

const kindOf = (path: string): FileKind => {
  if (path === 'haproxy.cfg') return 'config';
  if (path.endsWith('.map')) return 'map';
  return path.endsWith('.pem') ? 'cert' : 'general';
};
