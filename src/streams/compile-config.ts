import { sha256, sha256Hasher } from '../digest.ts';
import type { TemplateConfig } from '../render/config/template-config.ts';
import { type CreatedEngine, createEngine } from '../render/engine.ts';
import { createRouting, type RoutingSettings } from '../routing/routing.ts';
import { inspectKeyPair } from './key-pair.ts';

/** What a configuration is compiled with, as plain data: it also travels to the process that vets it. */
export interface CompileSettings {
  /** Lowest HAProxy version of the fleet, for example `3.0.11`. */
  readonly haproxyVersion: string;
  readonly routing: Omit<RoutingSettings, 'inspectKeyPair'>;
}

/** Compiles a configuration, or says everything that is wrong with its templates. */
export const compileConfig = (
  config: TemplateConfig,
  { haproxyVersion, routing }: CompileSettings,
): CreatedEngine =>
  createEngine({
    config,
    routing: () => createRouting({ ...routing, inspectKeyPair }),
    digest: sha256,
    hasher: () => sha256Hasher(),
    capabilities: { haproxy: haproxyVersion },
  });
