import type { WatchedResource } from '../../snapshot/watch.ts';
import type { ControllerSettings, DataplaneSettings } from '../render.ts';
import type { ValidationTestSpec } from './spec.ts';

/**
 * A `HAProxyTemplateConfig` (`haproxy-haptic.org/v1alpha1`) merged over the enabled libraries, defaults filled in. User
 * content wins by name.
 */
export interface TemplateConfig {
  /** Identifies the content: digest over everything below. */
  readonly generation: string;
  /** Pods of the fleet. */
  readonly podSelector: Readonly<Record<string, string>>;
  readonly watched: readonly WatchedResource[];
  /** Template of the configuration file. */
  readonly main: TemplateSource;
  /** By name, for `include`. What a protective one is printed for is not served without it. */
  readonly snippets: ReadonlyMap<string, TemplateSource & { readonly protective?: boolean }>;
  readonly maps: ReadonlyMap<string, TemplateSource & { readonly ordered: boolean }>;
  readonly files: ReadonlyMap<string, TemplateSource & { readonly reloadOnPush: boolean }>;
  readonly certificates: ReadonlyMap<string, TemplateSource>;
  /** `templatingSettings.extraContext`, library defaults below the user's, merged member by member. */
  readonly extraContext: Readonly<Record<string, unknown>>;
  readonly dataplane: DataplaneSettings;
  readonly controller: ControllerSettings;
  /** Tests that the configuration brings, by name; `_global` has what all of them share. */
  readonly validationTests: ReadonlyMap<string, ValidationTestSpec>;
  readonly logLevel: 'trace' | 'debug' | 'info' | 'warn' | 'error';
}

export interface TemplateSource {
  /** For messages: `libraries/ingress: frontend-routing`, `HAProxyTemplateConfig default/haptic: haproxyConfig.template`. */
  readonly source: string;
  readonly text: string;
  /** Watched resources it needs; left out when one of them is not there. */
  readonly requires: readonly string[];
}

/** What `source` begins with when a template comes with a library. */
export const LIBRARY = 'libraries/';
