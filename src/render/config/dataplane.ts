import type { ConfigOverrides, Layer } from './layers.ts';
import type { DataplaneSettings } from '../render.ts';

const DEFAULT_BASE_DIR = '/etc/haproxy';
const PATHS = ['mapsDir', 'sslCertsDir', 'generalStorageDir', 'configFile'] as const;

const DEFAULTS: Omit<DataplaneSettings, 'baseDir'> = {
  port: 5555,
  minDeploymentIntervalMs: 5_000,
  driftPreventionIntervalMs: 60_000,
  deploymentTimeoutMs: 30_000,
  configPublishIntervalMs: 10_000,
  mapsDir: 'maps',
  sslCertsDir: 'certs',
  generalStorageDir: 'general',
  configFile: 'haproxy.cfg',
};

/**
 * The dataplane settings of all layers, the latest of each wins. Absolute paths below the base directory become
 * relative to it; undefined after a report of one that leads outside.
 */
export const dataplaneSettings = (
  layers: readonly Layer[],
  { baseDir = DEFAULT_BASE_DIR, dataplane = {} }: ConfigOverrides,
): DataplaneSettings | undefined => {
  let settings = { ...DEFAULTS, baseDir };
  let isGood = true;
  for (const { spec, report } of layers) {
    const given = spec.dataplane ?? {};
    const paths = PATHS.flatMap((name): [string, string][] => {
      const path = given[name];
      if (path === undefined) return [];
      const relative = relativePath(path, baseDir);
      if (relative !== undefined) return [[name, relative]];
      isGood = false;
      report(
        `spec.dataplane.${name}`,
        `must be a path inside ${DEFAULT_BASE_DIR}, of letters, digits, "-", "_" and "."`,
        `Write it like ${DEFAULTS[name]}.`,
      );
      return [];
    });
    settings = { ...settings, ...numbers(given), ...Object.fromEntries(paths) };
  }
  const result = { ...settings, ...dataplane };
  if (new Set(PATHS.map((name) => result[name])).size < PATHS.length) {
    layers
      .at(-1)
      ?.report('spec.dataplane', 'uses one path for two purposes', 'Give each its own path.');
    isGood = false;
  }
  return isGood ? result : undefined;
};

const relativePath = (path: string, baseDir: string): string | undefined => {
  const base = [DEFAULT_BASE_DIR, baseDir].find((directory) => path.startsWith(`${directory}/`));
  const relative = base === undefined ? path : path.slice(base.length + 1);
  const isGood = relative
    .replace(/\/$/, '')
    .split('/')
    .every((member) => /^[A-Za-z0-9_][\w.-]*$/.test(member));
  return isGood ? relative.replace(/\/$/, '') : undefined;
};

type Given = NonNullable<Layer['spec']['dataplane']>;

/** Only what is given, under the names that carry the unit. */
const numbers = (given: Given): Partial<DataplaneSettings> => ({
  ...(given.port !== undefined && { port: given.port }),
  ...(given.minDeploymentInterval !== undefined && {
    minDeploymentIntervalMs: given.minDeploymentInterval,
  }),
  ...(given.driftPreventionInterval !== undefined && {
    driftPreventionIntervalMs: given.driftPreventionInterval,
  }),
  ...(given.deploymentTimeout !== undefined && { deploymentTimeoutMs: given.deploymentTimeout }),
  ...(given.configPublishInterval !== undefined && {
    configPublishIntervalMs: given.configPublishInterval,
  }),
});
