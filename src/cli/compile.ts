import { catchError, from, map, type Observable, of, switchMap } from 'rxjs';
import { sha256 } from '../digest.ts';
import type { ConfigEvent, ResourceSource } from '../ports.ts';
import type { ConfigOverrides } from '../render/config/layers.ts';
import type { ParseConfigOptions, ParsedConfig } from '../render/config/parse-config.ts';
import type { TemplateConfig } from '../render/config/template-config.ts';
import { compileConfig, type CompileSettings } from '../streams/compile-config.ts';
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
  withLibraries<ParsedConfig>(options, (parse) => directoryConfig(source, parse)).pipe(
    map((parsed) => (parsed.ok ? compile(parsed.config, options) : parsed)),
  );

/** What `use` makes of the libraries, or why they cannot be used. */
export const withLibraries = <T>(
  { overrides }: CompileOptions,
  use: (options: ParseConfigOptions) => Observable<T>,
): Observable<T | Refused> =>
  from(loadLibraries(librariesDirectory())).pipe(
    catchError((error: unknown) => of(unreadable(error))),
    switchMap((loaded): Observable<T | Refused> =>
      loaded.ok ? use({ libraries: loaded.libraries, digest: sha256, overrides }) : of(loaded),
    ),
  );

type Refused = Extract<ParsedConfig, { ok: false }>;

/** What configurations are compiled with where no cluster is. */
export const compileSettings = ({
  haproxyVersion,
  defaultCertificate,
}: CompileOptions): CompileSettings => ({
  haproxyVersion,
  routing: {
    ingressClass: { name: 'haptic', controller: 'haproxy-haptic.org/controller' },
    standalone: true,
    defaultCertificate: { pem: defaultCertificate },
  },
});

const compile = (config: TemplateConfig, options: CompileOptions): ConfigEvent => {
  const created = compileConfig(config, compileSettings(options));
  return created.ok ? { ok: true, engine: renderEngine(created.engine) } : created;
};

const unreadable = (error: unknown): Refused => ({
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
