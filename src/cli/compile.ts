import { catchError, from, map, type Observable, of, switchMap } from 'rxjs';
import { sha256 } from '../digest.ts';
import type { ConfigEvent, ResourceSource } from '../ports.ts';
import type { ConfigOverrides } from '../render/config/layers.ts';
import type { ParsedConfig } from '../render/config/parse-config.ts';
import { compileConfig } from '../streams/compile-config.ts';
import { directoryConfig } from '../streams/config.ts';
import { loadLibraries } from '../streams/libraries.ts';
import { renderEngine } from '../streams/render-engine.ts';
import { librariesDirectory } from './programs.ts';

/** What configurations of a directory are compiled with. */
export interface CompileOptions {
  readonly overrides: ConfigOverrides;
  /** Lowest HAProxy version of the fleet, for example `3.0.11`. */
  readonly haproxyVersion: string;
  /** PEM served where no other certificate fits. */
  readonly defaultCertificate: string;
}

/** The compiled configurations of a directory, a new one for each change; what cannot be compiled is told. */
export const compiledConfigs = (
  source: ResourceSource,
  options: CompileOptions,
): Observable<ConfigEvent> =>
  from(loadLibraries(librariesDirectory())).pipe(
    switchMap((loaded): Observable<ParsedConfig> =>
      loaded.ok
        ? directoryConfig(source, {
            libraries: loaded.libraries,
            digest: sha256,
            overrides: options.overrides,
          })
        : of(loaded),
    ),
    map((parsed) => (parsed.ok ? compile(parsed, options) : parsed)),
    catchError((error: unknown) => of(unreadable(error))),
  );

const compile = (
  { config }: Extract<ParsedConfig, { ok: true }>,
  { haproxyVersion, defaultCertificate }: CompileOptions,
): ConfigEvent => {
  const created = compileConfig(config, {
    haproxyVersion,
    routing: {
      ingressClass: { name: 'haptic', controller: 'haproxy-haptic.org/controller' },
      standalone: true,
      defaultCertificate: { pem: defaultCertificate },
    },
  });
  return created.ok ? { ok: true, engine: renderEngine(created.engine) } : created;
};

const unreadable = (error: unknown): ConfigEvent => ({
  ok: false,
  problems: [
    {
      severity: 'error',
      reason: 'LibrariesUnreadable',
      message: `The template libraries cannot be read: ${error instanceof Error ? error.message : String(error)}.`,
      nextStep: 'Install HAPTIC anew, or restore its libraries folder.',
    },
  ],
});
