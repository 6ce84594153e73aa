import { type Chunk, concat, leaf } from '../cells/chunk.ts';
import type { Checkable } from '../gate/verdict.ts';
import { Origin } from '../render/language/text.ts';
import { provenanceOf } from '../render/provenance.ts';
import type { RenderedFile } from '../render/render.ts';
import type { KubeObject } from '../snapshot/objects.ts';
import type { FromVetter, RenderHead, TextLeaf, ToVetter } from './messages.ts';

/** Characters and leaves of one message; small enough that nobody's event loop is held up. */
const MESSAGE = { characters: 256 * 1024, leaves: 2_000, objects: 200 };

/** The objects of a watched resource in parts, so that the event loop gets its turns. */
export function* objectMessages(
  resource: string,
  objects: readonly KubeObject[],
): Generator<ToVetter> {
  for (let from = 0; from < objects.length; from += MESSAGE.objects) {
    yield { type: 'objects', resource, objects: objects.slice(from, from + MESSAGE.objects) };
  }
}

/** The texts of a render in parts, one message each; the generator's return value is the render without them. */
export function* renderMessages({
  plan,
  files,
}: Checkable): Generator<FromVetter, RenderHead, undefined> {
  const heads: RenderHead['files'][number][] = [];
  let batch: TextLeaf[] = [];
  let characters = 0;
  for (const { path, kind, text } of files.values()) {
    let count = 0;
    for (const part of leavesOf(text)) {
      batch.push(part);
      count += 1;
      characters += part.text.length;
      if (batch.length < MESSAGE.leaves && characters < MESSAGE.characters) continue;
      yield { type: 'leaves', leaves: batch };
      [batch, characters] = [[], 0];
    }
    heads.push({ path, kind, leaves: count });
  }
  if (batch.length > 0) yield { type: 'leaves', leaves: batch };
  return { planId: plan.id, configPath: plan.config.path, files: heads };
}

/** Puts a render together again, as far as a check needs it. `leaves` are all that came since the last one. */
export const receivedRender = (
  { planId, configPath, files }: RenderHead,
  leaves: readonly Chunk[],
): Checkable => {
  let from = 0;
  const received = files.map(({ path, kind, leaves: count }): [string, RenderedFile] => {
    const text = concat(leaves.slice(from, from + count));
    from += count;
    return [path, { path, kind, text }];
  });
  const texts = new Map(received);
  const config = texts.get(configPath)?.text ?? concat([]);
  return {
    plan: { id: planId, config: { path: configPath, digest: '', size: config.size } },
    files: texts,
    provenance: (line) => provenanceOf(config, line),
  };
};

/** A leaf as it was, for {@link receivedRender}. */
export const receivedLeaf = ({ text, marks, object }: TextLeaf): Chunk =>
  leaf(text, marks === undefined ? undefined : new Origin(marks, object));

function* leavesOf(chunk: Chunk): Generator<TextLeaf> {
  if (chunk.text === undefined) for (const child of chunk.children) yield* leavesOf(child);
  else if (chunk.origin instanceof Origin) {
    const { marks, object } = chunk.origin;
    yield { text: chunk.text, marks, ...(object !== undefined && { object }) };
  } else yield { text: chunk.text };
}
