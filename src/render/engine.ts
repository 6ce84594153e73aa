import type { DigestFunction } from '../plan/plan.ts';
import type { Problem } from '../snapshot/problem.ts';
import { globalScope } from './language/functions.ts';
import type { TemplateEngine } from './render.ts';
import { Renderer, type SnapshotRouting } from './renderer.ts';
import type { TemplateConfig } from './config/template-config.ts';
import { joiningHasher, type TextHasher } from './text-digests.ts';
import { compileTemplates } from './language/template-set.ts';

export interface EngineParts {
  readonly config: TemplateConfig;
  /**
   * Makes the routing of one renderer, which keeps its own previous model and is asked once for each snapshot that is
   * rendered, in steps where it offers them.
   */
  readonly routing: () => SnapshotRouting;
  /** Hex SHA-256 of UTF-8 text. */
  readonly digest: DigestFunction;
  /** The same for text in pieces, so that a change of a long file is cheap. Default: made of `digest`. */
  readonly hasher?: () => TextHasher;
  /** What the fleet's HAProxy can do, `capabilities` in templates. Default: version 3.0 and nothing else. */
  readonly capabilities?: Readonly<Record<string, string | number | boolean>>;
}

export type CreatedEngine =
  | { readonly ok: true; readonly engine: TemplateEngine }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** Compiles a configuration, or says everything that is wrong with its templates. */
export const createEngine = ({
  config,
  routing,
  digest,
  hasher = () => joiningHasher(digest),
  capabilities,
}: EngineParts): CreatedEngine => {
  const able = capabilities ?? { haproxy: '3.0' };
  const globals = globalScope(config, able);
  const haproxyVersion = String(able['haproxy'] ?? '3.0');
  const compiled = compileTemplates(config, globals);
  if (!compiled.ok) return compiled;
  const engine = (): TemplateEngine => {
    const parts = {
      ...{ config, set: compiled.set, haproxyVersion, globals },
      ...{ routing: routing(), digest, hasher },
    };
    const renderer = new Renderer(parts);
    return {
      generation: config.generation,
      watched: config.watched,
      settings: config.dataplane,
      controller: config.controller,
      podSelector: config.podSelector,
      protective: compiled.set.protective,
      steps: (snapshot) => renderer.steps(snapshot),
      stats: () => renderer.stats(),
      readsFor: (objects) => renderer.readsFor(objects),
      fork: engine,
    };
  };
  return { ok: true, engine: engine() };
};
