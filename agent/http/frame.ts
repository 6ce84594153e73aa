import { FRAME_HEAD_BYTES, decodeFrameHead } from '../../src/protocol/frame.ts';
import { LIMITS } from '../../src/protocol/protocol.ts';
import { BadRequest } from '../failures.ts';

/** How long a client may be silent while its body is awaited. */
export interface Silence {
  /** Milliseconds. Time in which nobody reads, for example behind the lock, is not the client's and does not count. */
  readonly longestMs: number;
  /** Called when it lasts longer; has to end the body. */
  readonly onTooLong: () => void;
}

/** The body of one apply, read front to back and never held as a whole. */
export class Frame {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array(0);
  #read = 0;
  readonly #silence: Silence;

  constructor(body: AsyncIterable<Uint8Array>, silence: Silence) {
    this.#chunks = body[Symbol.asyncIterator]();
    this.#silence = silence;
  }

  /**
   * The bytes of the manifest; call it first.
   *
   * @throws BadRequest on a wrong head, a manifest over the limit, or an early end
   */
  async manifest(): Promise<Uint8Array> {
    const length = decodeFrameHead(await this.#whole(FRAME_HEAD_BYTES));
    if (length === undefined) throw new BadRequest('the body is not a frame of this protocol');
    if (length > LIMITS.manifestBytes) {
      throw new BadRequest(`the manifest has more than ${LIMITS.manifestBytes} bytes`, 413);
    }
    return this.#whole(length);
  }

  /**
   * The next `length` bytes, which must be read to their end before anything else.
   *
   * @throws BadRequest when the body ends before
   */
  async *part(length: number): AsyncGenerator<Uint8Array> {
    let missing = length;
    while (missing > 0) {
      if (this.#rest.length === 0) await this.#next();
      const chunk = this.#rest.subarray(0, missing);
      this.#rest = this.#rest.subarray(chunk.length);
      missing -= chunk.length;
      yield chunk;
    }
  }

  /** @throws BadRequest when there are bytes after the last part */
  async end(): Promise<void> {
    if (this.#rest.length > 0 || !(await this.#atEnd())) {
      throw new BadRequest('the body is longer than its manifest says');
    }
  }

  /** Reads and forgets what is left, so that the client can be answered on the same connection. Never throws. */
  async discard(): Promise<void> {
    try {
      for (;;) {
        await this.#next();
        this.#rest = new Uint8Array(0);
      }
    } catch {
      // the end, or the client went away
    }
  }

  async #atEnd(): Promise<boolean> {
    for (;;) {
      const next = await this.#chunk();
      if (next.done === true) return true;
      if (next.value.length > 0) return false;
    }
  }

  async #whole(length: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(length);
    let position = 0;
    for await (const chunk of this.part(length)) {
      bytes.set(chunk, position);
      position += chunk.length;
    }
    return bytes;
  }

  async #chunk(): Promise<IteratorResult<Uint8Array>> {
    const { longestMs, onTooLong } = this.#silence;
    const timer = setTimeout(onTooLong, longestMs);
    try {
      return await this.#chunks.next();
    } finally {
      clearTimeout(timer);
    }
  }

  async #next(): Promise<void> {
    const next = await this.#chunk();
    if (next.done === true) throw new BadRequest('the body ends too early');
    this.#read += next.value.length;
    if (this.#read > LIMITS.bodyBytes) {
      throw new BadRequest(`the body has more than ${LIMITS.bodyBytes} bytes`, 413);
    }
    this.#rest = next.value;
  }
}
