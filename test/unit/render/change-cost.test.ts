import { expect, test } from 'vitest';
import { sha256, sha256Hasher } from '../../../src/digest.ts';
import { parseConfig } from '../../../src/render/config/parse-config.ts';
import { createEngine } from '../../../src/render/engine.ts';
import type { Render, TemplateEngine } from '../../../src/render/render.ts';
import { createRouting } from '../../../src/routing/routing.ts';
import {
  applyBatch,
  emptySnapshot,
  type IndexedSnapshot,
} from '../../../src/snapshot/apply-batch.ts';
import { REPLACEMENT_KEY } from '../../../src/snapshot/folded-changes.ts';
import { objectKey, type KubeObject } from '../../../src/snapshot/objects.ts';
import { loadLibraries } from '../../../src/streams/libraries.ts';
import { countWork } from '../../support/counted-work.ts';
import {
  ingress,
  podEndpoint,
  resourceOf,
  service,
  slice,
  tlsSecret,
  type RuleWords,
} from '../../support/objects.ts';
import { LIBRARIES } from '../../support/rendered.ts';
import { runSteps } from '../../support/templates.ts';

const loaded = await loadLibraries(LIBRARIES);

/** Every Ingress has a line, every backend an ordered map's entry, a status, a file of its own and a line in a section and in a file. */
const SPEC = {
  templateSnippets: {
    'sections-600-lines': {
      template: `# lines
{% cells b in routes.backends %}
# {{ b.name | comment }}
{{ map_entry(b.name, b.servers | length, "ordered.map") }}
{{ status(b, { servers: b.servers | length }) }}
{{ file(b.name ~ ".txt", b.name) }}
{% endcells %}
{% cells one in resources.ingresses %}
# {{ one.metadata.name | comment }}
{% endcells %}
`,
    },
  },
  maps: { 'ordered.map': { template: '{# filled by cells #}', ordered: true } },
  files: {
    'names.txt': {
      template: 'names\n{% cells b in routes.backends %}\n{{ b.name | text }}\n{% endcells %}\n',
    },
  },
};

const pem = (what: string, text: string): string =>
  `-----BEGIN ${what}-----\n${text}\n-----END ${what}-----\n`;

const engine = (hashed: { bytes: number }): TemplateEngine => {
  if (!loaded.ok) throw new Error('the libraries do not load');
  const object = {
    ...{ apiVersion: 'haproxy-haptic.org/v1alpha1', kind: 'HAProxyTemplateConfig' },
    ...{ metadata: { name: 'test', namespace: 'default' }, spec: SPEC },
  };
  const parsed = parseConfig(object, { libraries: loaded.libraries, digest: sha256 });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const counted = (hasher: ReturnType<typeof sha256Hasher>): ReturnType<typeof sha256Hasher> => ({
    ...hasher,
    update: (text) => {
      hashed.bytes += text.length;
      hasher.update(text);
    },
    copy: () => counted(hasher.copy()),
  });
  const created = createEngine({
    config: parsed.config,
    routing: () =>
      createRouting({
        ingressClass: { name: 'haptic', controller: 'haproxy-haptic.org/controller' },
        standalone: true,
        defaultCertificate: { pem: pem('CERTIFICATE', 'AAAA') + pem('PRIVATE KEY', 'AAAA') },
        inspectKeyPair: () => ({ ok: true, names: [], notAfter: '2030-01-01T00:00:00Z' }),
      }),
    digest: (text) => {
      hashed.bytes += text.length;
      return sha256(text);
    },
    hasher: () => counted(sha256Hasher()),
  });
  if (!created.ok) throw new Error(JSON.stringify(created.problems));
  return created.engine;
};

const route = (index: number, paths: readonly string[] = ['/']): KubeObject =>
  ingress(`app-${index}`, {
    rules: paths.map((path) => [`app-${index}.org`, path, `app-${index}:80`]),
    tls: [[`tls-${index}`, `app-${index}.org`]],
  });

const endpoints = (index: number, address: string): KubeObject =>
  slice(`app-${index}`, { endpoints: [podEndpoint(`pod-${index}`, address)] });

const secret = (index: number, text: string): KubeObject =>
  tlsSecret(`tls-${index}`, {
    'tls.crt': pem('CERTIFICATE', text),
    'tls.key': pem('PRIVATE KEY', 'AAAA'),
  });

/** An Ingress that names a Service which is not there, so that there is a problem for each. */
const stray = (index: number, further: readonly RuleWords[] = []): KubeObject =>
  ingress(`stray-${index}`, {
    rules: [[`stray-${index}.org`, '/', `stray-${index}:80`], ...further],
  });

const world = (n: number): readonly KubeObject[] =>
  Array.from({ length: n }, (_, index) => [
    ...[route(index), service(`app-${index}`), endpoints(index, '10.0.0.1')],
    ...[secret(index, 'AAAA'), stray(index)],
  ]).flat();

interface Measured {
  readonly evaluated: number;
  readonly operations: number;
  readonly hashed: number;
}

/** What changes of one object cost among `n` applications. */
const measure = (n: number): Readonly<Record<string, Measured>> => {
  const hashed = { bytes: 0 };
  const renderer = engine(hashed);
  const objects = world(n);
  let snapshot: IndexedSnapshot = applyBatch(
    emptySnapshot(renderer.watched),
    new Map(
      renderer.watched.map(({ name }) => [
        name,
        new Map([
          [
            REPLACEMENT_KEY,
            { type: 'Replaced', objects: objects.filter((one) => resourceOf(one) === name) },
          ],
        ]),
      ]),
    ),
  );
  const rendered = (): Render => {
    const result = runSteps(renderer, snapshot);
    if (!result.ok) throw new Error(JSON.stringify(result.failure));
    return result.render;
  };
  const change = (object: KubeObject): Measured => {
    const key = objectKey(object);
    snapshot = applyBatch(
      snapshot,
      new Map([[resourceOf(object), new Map([[key, { type: 'Upserted', object }]])]]),
    );
    hashed.bytes = 0;
    let evaluated = 0;
    const operations = countWork(() => {
      evaluated = rendered().cells.evaluated;
    });
    return { evaluated, operations, hashed: hashed.bytes };
  };
  rendered();
  const middle = Math.floor(n / 2);
  // Once before: what is kept after the first change is not there after the render from scratch.
  change(endpoints(middle, '10.0.0.9'));
  return {
    endpoint: change(endpoints(middle, '10.0.0.2')),
    path: change(route(middle, ['/', '/more'])),
    secret: change(secret(middle, 'BBBB')),
    problem: change(stray(middle, [['not a host', '/', `stray-${middle}:80`]])),
  };
};

const [few, many] = [measure(100), measure(1_600)];

test.each(['endpoint', 'path', 'secret', 'problem'])(
  'R2: a changed %s costs no more among 1,600 applications than twice what it costs among 100',
  (what) => {
    const [small, large] = [few[what], many[what]];
    expect(large?.evaluated).toBe(small?.evaluated);
    expect(large?.operations).toBeLessThan(2 * (small?.operations ?? 0));
  },
);
