/** Objects rendered by the real engine with the libraries that come with the program. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chunkText } from '../../src/cells/chunk.ts';
import { sha256, sha256Hasher } from '../../src/digest.ts';
import type { ConfigOverrides } from '../../src/render/config/layers.ts';
import { createEngine } from '../../src/render/engine.ts';
import { parseConfig } from '../../src/render/config/parse-config.ts';
import type { Render, TemplateEngine } from '../../src/render/render.ts';
import { createRouting } from '../../src/routing/routing.ts';
import type { KubeObject } from '../../src/snapshot/objects.ts';
import type { Problem } from '../../src/snapshot/problem.ts';
import type { Snapshot } from '../../src/snapshot/snapshot.ts';
import { inspectKeyPair } from '../../src/streams/key-pair.ts';
import { loadLibraries } from '../../src/streams/libraries.ts';

/** The folder of the libraries in a checkout. */
export const LIBRARIES = fileURLToPath(new URL('../../libraries', import.meta.url));

/** What {@link libraryEngine} needs to know. */
export interface EngineWords {
  /** A `HAProxyTemplateConfig`. Default: none. */
  readonly config?: KubeObject;
  readonly overrides?: ConfigOverrides;
  /** PEM of the default certificate. Default: none, and so no HTTPS. */
  readonly defaultPem?: string;
}

const told = (problems: readonly Problem[]): string =>
  problems
    .map(({ reason, message, place }) => `${reason}: ${message} ${JSON.stringify(place ?? {})}`)
    .join('\n');

/**
 * An engine over the libraries, as standalone makes it.
 *
 * @throws with every problem when the libraries or the configuration are refused
 */
export const libraryEngine = async (words: EngineWords = {}): Promise<TemplateEngine> => {
  const loaded = await loadLibraries(LIBRARIES);
  if (!loaded.ok) throw new Error(told(loaded.problems));
  const { libraries } = loaded;
  const overrides = words.overrides ?? {};
  const parsed = parseConfig(words.config, { libraries, digest: sha256, overrides });
  if (!parsed.ok) throw new Error(told(parsed.problems));
  const routing = () =>
    createRouting({
      ingressClass: { name: 'haptic', controller: 'haproxy-haptic.org/controller' },
      standalone: true,
      inspectKeyPair,
      ...(words.defaultPem === undefined ? {} : { defaultCertificate: { pem: words.defaultPem } }),
    });
  const created = createEngine({
    config: parsed.config,
    routing,
    digest: sha256,
    hasher: () => sha256Hasher(),
  });
  if (!created.ok) throw new Error(told(created.problems));
  return created.engine;
};

/**
 * One whole render.
 *
 * @throws with every problem when it fails
 */
export const renderAll = (engine: TemplateEngine, snapshot: Snapshot): Render => {
  const steps = engine.steps(snapshot);
  for (;;) {
    const step = steps.next();
    if (step.done !== true) continue;
    if (!step.value.ok) throw new Error(told(step.value.failure.problems));
    return step.value.render;
  }
};

/** Texts of the files of a render, by path. */
export const textsOf = ({ files }: Render): Readonly<Record<string, string>> =>
  Object.fromEntries([...files].map(([path, { text }]) => [path, chunkText(text)]));

/** Writes the files of a render below a directory, as an agent would; keys are for the owner alone. */
export const writeRender = (render: Render, directory: string): void => {
  for (const [path, { kind, text }] of render.files) {
    const target = join(directory, path);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, chunkText(text));
    if (kind === 'cert') chmodSync(target, 0o600);
  }
};
