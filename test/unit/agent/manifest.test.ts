import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { BadRequest } from '../../../agent/failures.ts';
import { Frame } from '../../../agent/http/frame.ts';
import { parseManifest } from '../../../agent/http/manifest.ts';
import { isCanonicalPath } from '../../../agent/files/paths.ts';
import { LIMITS } from '../../../src/protocol/protocol.ts';
import { encodeFrameHead } from '../../../src/protocol/frame.ts';

const DIGEST = 'a'.repeat(64);
const MANIFEST = {
  protocol: 1,
  planId: DIGEST,
  epoch: 1,
  sequence: 1,
  expected: { applied: null, running: DIGEST, workerOperations: 2 },
  mode: 'auto',
  reload: false,
  reasons: [],
  reloadNotBeforeMs: 0,
  reloadIntervalMs: 0,
  files: [{ path: 'a', kind: 'general', digest: DIGEST, size: 1, inline: { length: 1 } }],
  operations: [],
  inPlaceOperations: [],
  planLength: 0,
};
const PATIENT = { longestMs: 10_000, onTooLong: () => undefined };
const parse = (more: object): unknown =>
  parseManifest(Buffer.from(JSON.stringify({ ...MANIFEST, ...more })));

describe('a manifest', () => {
  test('is read as it was sent; members of a newer controller are left out', () => {
    expect(parse({ of_the_future: 1 })).toEqual({ ...MANIFEST, leader: '' });
    expect(parse({ refused: [DIGEST], validated: DIGEST })).toMatchObject({
      refused: [DIGEST],
      validated: DIGEST,
    });
  });

  test.each(Object.keys(MANIFEST))('without a usable %s is refused by name', (member) => {
    expect(() => parse({ [member]: 7.5 })).toThrow(BadRequest);
    expect(() => parse({ [member]: undefined })).toThrow(BadRequest);
  });

  test('an operation that cannot be executed is kept with the reason', () => {
    const operations = [
      { kind: '__proto__' },
      { kind: 'server_remove', backend: 'b', server: 'a/b' },
      { kind: 'map_replace', map: 'm', entries: [['k', 'v\n']] },
    ];
    expect(parse({ operations })).toMatchObject({
      operations: [
        { ok: false, reason: 'unknown operation' },
        { ok: false, reason: 'bad server name', target: 'b/a/b' },
        { ok: false, reason: 'bad map value' },
      ],
    });
  });

  test('with more files, operations or bytes than the limits is refused before anything is read', () => {
    const [file] = MANIFEST.files;
    const files = Array.from({ length: LIMITS.files + 1 }, (_, at) => ({
      ...file,
      path: `f${at}`,
    }));
    expect(() => parse({ files })).toThrow(/files/);
    expect(() => parse({ files: files.slice(1) })).not.toThrow();
    const size = LIMITS.bodyBytes + 1;
    expect(() => parse({ files: [{ ...file, size, inline: { length: size } }] })).toThrow(
      expect.objectContaining({ status: 413 }),
    );
    for (const list of ['operations', 'inPlaceOperations']) {
      const many = new Array(LIMITS.operations + 1).fill({ kind: 'x' });
      expect(() => parse({ [list]: many })).toThrow(new RegExp(list));
      expect(() => parse({ [list]: many.slice(1) })).not.toThrow();
    }
    expect(() => parse({ planLength: LIMITS.planBytes + 1 })).toThrow(/plan is too large/);
  });

  test('a whole file whose bytes are not its size is refused', () => {
    const files = [{ ...MANIFEST.files[0], inline: { length: 2 } }];
    expect(() => parse({ files })).toThrow(/not its size/);
  });
});

describe('a frame', () => {
  const chunked = async function* (bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += size) {
      yield await Promise.resolve(bytes.subarray(at, at + size));
    }
  };
  test.each([1, 2, 7, 8, 9, 100])('is told apart whatever its chunks (%i bytes)', async (size) => {
    const body = Buffer.concat([encodeFrameHead(3), Buffer.from('manfirstsecond')]);
    const frame = new Frame(chunked(body, size), PATIENT);
    expect(Buffer.from(await frame.manifest()).toString()).toBe('man');
    expect(await textOf(frame.part(5))).toBe('first');
    expect(await textOf(frame.part(0))).toBe('');
    expect(await textOf(frame.part(6))).toBe('second');
    await expect(frame.end()).resolves.toBeUndefined();
  });

  test('that ends in the middle of a part is refused', async () => {
    const frame = new Frame(
      chunked(Buffer.concat([encodeFrameHead(1), Buffer.from('mab')]), 4),
      PATIENT,
    );
    await frame.manifest();
    await expect(textOf(frame.part(3))).rejects.toThrow(/ends too early/);
  });
});

const textOf = async (part: AsyncIterable<Uint8Array>): Promise<string> => {
  const parts: Uint8Array[] = [];
  for await (const chunk of part) parts.push(Buffer.from(chunk));
  return Buffer.concat(parts).toString();
};

describe('the silence of a client', () => {
  test('counts while its body is awaited, and not while nobody reads', async () => {
    let silent = 0;
    const never = new Promise<Uint8Array>(() => undefined);
    async function* body(): AsyncGenerator<Uint8Array> {
      yield Buffer.concat([encodeFrameHead(3), Buffer.from('man')]);
      yield await never;
    }
    const frame = new Frame(body(), { longestMs: 30, onTooLong: () => (silent += 1) });
    await frame.manifest();
    await sleep(90);
    expect(silent).toBe(0);
    void textOf(frame.part(1));
    await sleep(90);
    expect(silent).toBe(1);
  });
});

describe('a path', () => {
  test.each(['a', 'a/b.c', 'maps/hosts.map', 'a b', '…', 'a..b', 'd'.repeat(255)])(
    '%j is inside the tree',
    (path) => expect(isCanonicalPath(path)).toBe(true),
  );

  test.each([
    '',
    '/',
    'a/',
    '/a',
    '.',
    '..',
    'a/..',
    '.a',
    'a//b',
    'a\\b',
    'a\u0000',
    'é'.repeat(128),
  ])('%j is refused', (path) => expect(isCanonicalPath(path)).toBe(false));
});
