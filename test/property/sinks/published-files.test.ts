import { fc, test } from '@fast-check/vitest';
import { createHash } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import { asyncScheduler, lastValueFrom, of, takeUntil, timer } from 'rxjs';
import { describe, expect } from 'vitest';
import { chunkTexts, leaf } from '../../../src/cells/chunk.ts';
import type { FileKind } from '../../../src/protocol/protocol.ts';
import type { RenderedFile } from '../../../src/render/render.ts';
import { gzipTexts } from '../../../src/sinks/gzip-texts.ts';
import {
  compressedContent,
  holdsPrivateKey,
  objectName,
  plainContent,
  type PublishedFile,
  PUBLISHED_RESOURCES,
  specOf,
} from '../../../src/sinks/published-files.ts';
import { publisher } from '../../../src/sinks/publisher.ts';
import { inVirtualTime } from '../../support/marbles.ts';
import { ModelApi } from '../../support/model-api.ts';
import { deploying, leads, observing } from '../../support/observing.ts';
import { makeRender } from '../../support/renders.ts';

const resource = PUBLISHED_RESOURCES[1]!;

const fileOf = (text: string, path = 'maps/x.map'): PublishedFile => {
  const file: RenderedFile = { path, kind: 'map', text: leaf(text) };
  const checksum = `sha256:${createHash('sha256').update(text).digest('hex')}`;
  return { resource, path, checksum, file };
};

/** Text of any characters; unpaired surrogates never get into a text. */
const text = fc.string({ unit: 'binary', maxLength: 4_000 });

describe('parts', () => {
  test.prop([text, fc.integer({ min: 3, max: 200 })])(
    'R21: joining the parts gives the bytes, and none is larger than it may be',
    async (content, partBytes) => {
      const file = fileOf(content);
      const encoded =
        plainContent(file.file, partBytes) ??
        compressedContent(
          await lastValueFrom(gzipTexts(chunkTexts(file.file.text)), {
            defaultValue: new Uint8Array(),
          }),
          partBytes,
        );
      const parts = encoded.contents.map(
        (_, index) => specOf(file, encoded, index + 1)['content'] as string,
      );
      const joined = encoded.compressed
        ? gunzipSync(Buffer.concat(parts.map((part) => Buffer.from(part, 'base64')))).toString()
        : parts.join('');
      expect(joined).toBe(content);
      const largest = Math.ceil(partBytes / 3) * 4;
      for (const part of parts)
        expect(Buffer.byteLength(JSON.stringify(part))).toBeLessThanOrEqual(largest + 2);
    },
  );

  test.prop([
    fc.array(
      fc.tuple(fc.string({ unit: 'binary', maxLength: 300 }), fc.integer({ min: 1, max: 9 })),
      { minLength: 1 },
    ),
  ])('R21: every path and part has a name of its own that the API server takes', (pairs) => {
    const named = new Map(
      pairs.map(([path, part]) => [
        JSON.stringify([path, part]),
        objectName('haptic-config', fileOf('', path), part),
      ]),
    );
    expect(new Set(named.values()).size).toBe(named.size);
    for (const name of named.values()) {
      expect(name).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/);
      expect(name.length).toBeLessThanOrEqual(253);
    }
  });
});

test.prop([
  text,
  fc.tuple(text, fc.integer({ min: 0, max: 4_000 })),
  fc.constantFrom('', 'RSA ', 'EC ', 'ENCRYPTED '),
])(
  'S49: a private key is seen wherever it stands and however the text is cut',
  (before, [after, cut], type) => {
    const whole = `${before}-----BEGIN ${type}PRIVATE KEY-----${after}`;
    const at = Math.min(cut, whole.length);
    const children = [leaf(whole.slice(0, at)), leaf(whole.slice(at))];
    const chunk = { size: 0, lines: 0, text: undefined, children, depth: 1 };
    expect(holdsPrivateKey({ path: 'x', kind: 'general', text: chunk })).toBe(true);
  },
);

const SECRET = 'c2VjcmV0LWtleS1tYXRlcmlhbA';
const kinds: readonly FileKind[] = ['map', 'cert', 'ca', 'crl', 'crt-list', 'general'];

test.prop(
  [
    fc.uniqueArray(fc.tuple(fc.stringMatching(/^[a-z]{1,8}$/), fc.constantFrom(...kinds)), {
      selector: ([name]) => name,
    }),
    fc.integer({ min: 0, max: 100 }),
  ],
  { numRuns: 50 },
)(
  'S49: no body ever holds a certificate, a key or what authenticates them',
  (files, compressionThreshold) => {
    const base = makeRender({ config: 'plain configuration' });
    const holds = (kind: FileKind): boolean => kind === 'cert' || kind === 'ca' || kind === 'crl';
    const others = files.map(([name, kind]): [string, RenderedFile] => [
      name,
      {
        path: name,
        kind,
        text: leaf(holds(kind) ? `-----BEGIN X-----\n${SECRET}\n` : `text of ${name}`),
      },
    ]);
    const render = { ...base, files: new Map([...base.files, ...others]) };
    const api = new ModelApi();
    api.put(
      '/apis/haproxy-haptic.org/v1alpha1/namespaces/haptic/haproxytemplateconfigs/haptic-config',
      {},
    );
    inVirtualTime(({ hot }) => {
      const publish = publisher({
        client: api,
        random: () => 0,
        owner: { namespace: 'haptic', name: 'haptic-config' },
        compress: (texts) => of(new Uint8Array(gzipSync([...texts].join('')))),
        publishing$: of({ enabled: true, compressionThreshold }),
        now: () => asyncScheduler.now(),
      });
      observing(hot('(dl)', { d: deploying(render), l: leads() }), publish)
        .pipe(takeUntil(timer(5_000)))
        .subscribe();
    });
    const texts = [...api.objects.values()].flatMap(({ spec }) => {
      if (spec === undefined) return [];
      const { content, compressed } = spec as { content: string; compressed: boolean };
      return [compressed ? gunzipSync(Buffer.from(content, 'base64')).toString() : content];
    });
    expect(texts).toHaveLength(1 + files.filter(([, kind]) => !holds(kind)).length);
    expect(texts.join('')).not.toContain(SECRET);
    expect(JSON.stringify(api.calls)).not.toContain(SECRET);
  },
);
