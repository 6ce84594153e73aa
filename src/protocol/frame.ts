import { FRAME_MAGIC } from './protocol.ts';

/** Media type of the framed body. */
export const FRAME_TYPE = 'application/x-haptic-apply';

/** Bytes before the manifest: magic and length. */
export const FRAME_HEAD_BYTES = 8;

/** The bytes that stand before a manifest of `manifestBytes` bytes. */
export function encodeFrameHead(manifestBytes: number): Uint8Array {
  const head = new Uint8Array(FRAME_HEAD_BYTES);
  for (let index = 0; index < 4; index += 1) head[index] = FRAME_MAGIC.charCodeAt(index);
  new DataView(head.buffer).setUint32(4, manifestBytes);
  return head;
}

/** Length of the manifest in bytes; `undefined` when these are not the first bytes of a frame. */
export function decodeFrameHead(head: Uint8Array): number | undefined {
  if (head.length < FRAME_HEAD_BYTES) return undefined;
  for (let index = 0; index < 4; index += 1) {
    if (head[index] !== FRAME_MAGIC.charCodeAt(index)) return undefined;
  }
  return new DataView(head.buffer, head.byteOffset).getUint32(4);
}
