import { fileURLToPath } from 'node:url';
import { generate } from 'selfsigned';
import { sha256, sha256Hasher } from '../src/digest.ts';
import { parseConfig } from '../src/render/config/parse-config.ts';
import { createEngine } from '../src/render/engine.ts';
import type { Render, TemplateEngine } from '../src/render/render.ts';
import { createRouting } from '../src/routing/routing.ts';
import type { KubeObject } from '../src/snapshot/objects.ts';
import type { Snapshot } from '../src/snapshot/snapshot.ts';
import { inspectKeyPair } from '../src/streams/key-pair.ts';
import { loadLibraries } from '../src/streams/libraries.ts';

/** The shape of a default certificate and no key in it: nothing is served here. */
const DEFAULT_PEM = ['CERTIFICATE', 'PRIVATE KEY']
  .map((label) => `-----BEGIN ${label}-----\nAA==\n-----END ${label}-----\n`)
  .join('');

/**
 * An engine over the libraries, as the program makes it.
 *
 * @param config a `HAProxyTemplateConfig`; default none
 */
export const benchEngine = async (config?: KubeObject): Promise<TemplateEngine> => {
  const loaded = await loadLibraries(fileURLToPath(new URL('../libraries', import.meta.url)));
  if (!loaded.ok) throw new Error('the libraries do not load');
  const parsed = parseConfig(config, { libraries: loaded.libraries, digest: sha256 });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems[0]));
  const created = createEngine({
    config: parsed.config,
    routing: () =>
      createRouting({
        ingressClass: { name: 'haptic', controller: 'haproxy-haptic.org/controller' },
        standalone: true,
        defaultCertificate: { pem: DEFAULT_PEM },
        inspectKeyPair,
      }),
    digest: sha256,
    hasher: () => sha256Hasher(),
  });
  if (!created.ok) throw new Error(JSON.stringify(created.problems[0]));
  return created.engine;
};

/** How long a slice of a render works before the event loop gets a turn, as `src/streams/render-engine.ts` does it. */
const SLICE_MS = 8;

/** One render and how long it kept the event loop, in milliseconds: each turn lasts until the slice is over. */
export const renderInTurns = (
  engine: TemplateEngine,
  snapshot: Snapshot,
): { readonly render: Render; readonly longestTurnMs: number } => {
  const steps = engine.steps(snapshot);
  let [turn, longestTurnMs] = [0, 0];
  for (;;) {
    const startedAt = performance.now();
    const step = steps.next();
    turn += performance.now() - startedAt;
    longestTurnMs = Math.max(longestTurnMs, turn);
    if (turn >= SLICE_MS) turn = 0;
    if (step.done !== true) continue;
    if (!step.value.ok) throw new Error(JSON.stringify(step.value.failure.problems[0]));
    return { render: step.value.render, longestTurnMs };
  }
};

/** A Secret of type `kubernetes.io/tls` with a key pair of its own. */
export const tlsSecret = async (name: string, namespace: string): Promise<KubeObject> => {
  const pair = await generate([{ name: 'commonName', value: `${name}.example.test` }], {
    keySize: 2048,
    algorithm: 'sha256',
  });
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  return {
    ...{ apiVersion: 'v1', kind: 'Secret', type: 'kubernetes.io/tls' },
    metadata: { name, namespace },
    data: { 'tls.crt': base64(pair.cert), 'tls.key': base64(pair.private) },
  };
};
