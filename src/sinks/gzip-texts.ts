import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { createGzip } from 'node:zlib';
import { defer, type Observable } from 'rxjs';

/** Compresses the concatenation of texts, UTF-8; emits the bytes once. */
export type CompressTexts = (texts: Iterable<string>) => Observable<Uint8Array>;

/** Texts are encoded in pieces of this many characters: small enough not to be felt, large enough not to cost. */
const PIECE = 64 * 1024;

/** Gzip on a thread of Node's pool; the texts are walked through as fast as it takes them. */
export const gzipTexts: CompressTexts = (texts) =>
  defer(() => buffer(Readable.from(pieces(texts), { objectMode: false }).compose(createGzip())));

/** The texts in pieces of about {@link PIECE} characters. */
function* pieces(texts: Iterable<string>): Generator<Buffer> {
  let piece = '';
  for (const text of texts) {
    piece += text;
    if (piece.length < PIECE) continue;
    yield Buffer.from(piece);
    piece = '';
  }
  if (piece !== '') yield Buffer.from(piece);
}
