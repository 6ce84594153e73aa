import { KubeError } from './client.ts';

const NEWLINE = 0x0a;

/**
 * Takes bytes in pieces as they arrive and gives the values of whole lines, one JSON text each. Bytes are decoded a line at
 * a time, so no character is cut in two. Empty lines mean nothing.
 */
export class JsonLines {
  readonly #maxBytes: number;
  #parts: Buffer[] = [];
  #bytes = 0;

  /** @param maxBytes longest line */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Values of the lines that end in this piece. Throws {@link KubeError} `protocol` for a line that is too long or not JSON. */
  *push(piece: Buffer): Generator {
    let start = 0;
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, start)) {
      this.#keep(piece.subarray(start, end));
      start = end + 1;
      const line = this.#take();
      if (line !== '') yield parsed(line);
    }
    if (start < piece.length) this.#keep(piece.subarray(start));
  }

  /** Throws {@link KubeError} `protocol` when the bytes ended inside a line. */
  end(): void {
    if (this.#take() !== '') throw new KubeError('protocol', 'the stream ended inside a line');
  }

  #keep(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > this.#maxBytes) {
      throw new KubeError('protocol', `a line is longer than ${this.#maxBytes} bytes`);
    }
    this.#parts.push(part);
  }

  #take(): string {
    const [first] = this.#parts;
    const line =
      first !== undefined && this.#parts.length === 1 ? first : Buffer.concat(this.#parts);
    this.#parts = [];
    this.#bytes = 0;
    return line.toString().trim();
  }
}

const parsed = (line: string): unknown => {
  try {
    return JSON.parse(line) as unknown;
  } catch {
    // The reason of a SyntaxError quotes the text, and the text may be a Secret.
    throw new KubeError('protocol', 'a line is not JSON');
  }
};
