import { chunkText, chunkTexts } from '../cells/chunk.ts';
import { sha256 } from '../digest.ts';
import type { Digest, FileKind } from '../protocol/protocol.ts';
import type { Render, RenderedFile } from '../render/render.ts';
import type { Members, WrittenResource } from './write-objects.ts';

const GROUP_VERSION = 'haproxy-haptic.org/v1alpha1';

const published = (kind: string): WrittenResource => ({
  apiVersion: GROUP_VERSION,
  kind,
  plural: `${kind.toLowerCase()}s`,
});

/** The kind of the configuration, which owns what is published. */
export const CONFIGURATION = published('HAProxyTemplateConfig');

/** The kind of the main file. */
export const HAPROXY_CFG = published('HAProxyCfg');

/** Files of other kinds hold certificates, keys or what authenticates them, and are never published. */
const RESOURCES: Readonly<Partial<Record<FileKind, WrittenResource>>> = {
  config: HAPROXY_CFG,
  map: published('HAProxyMapFile'),
  general: published('HAProxyGeneralFile'),
  'crt-list': published('HAProxyCRTListFile'),
};

/** All kinds that files are published as. */
export const PUBLISHED_RESOURCES: readonly WrittenResource[] = Object.values(RESOURCES);

/** Largest part of a file in bytes: as base64, with metadata and the longest status, it stays below 1 MiB (R21). */
export const PART_BYTES = 512 * 1024;

/** A file of the fleet that is published. */
export interface PublishedFile {
  readonly resource: WrittenResource;
  readonly path: string;
  /** `sha256:` and the digest of the whole file. */
  readonly checksum: string;
  readonly file: RenderedFile;
}

/** What of a render is published, the main file last: whoever sees its new version sees the others'. */
export const publishedFiles = (render: Render): readonly PublishedFile[] =>
  [...render.files.values()]
    .flatMap((file) => {
      const resource = RESOURCES[file.kind];
      if (resource === undefined) return [];
      const checksum = `sha256:${digestOf(render, file)}`;
      return [{ resource, path: file.path, checksum, file }];
    })
    .sort((left, right) => rank(left) - rank(right));

const rank = ({ resource }: PublishedFile): number => (resource === HAPROXY_CFG ? 1 : 0);

/** The plan knows it, so that an unchanged file costs nothing. */
const digestOf = ({ plan }: Render, { path, text }: RenderedFile): Digest => {
  if (path === plan.config.path) return plan.config.digest;
  return (
    (plan.maps.get(path) ?? plan.files.get(path) ?? plan.crtLists.get(path))?.text ??
    sha256(chunkText(text))
  );
};

const KEY = /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/;
/** Longer than the line that a key begins with. */
const OVERLAP = 80;

/** Whether a text holds a private key, which a template may have put where none belongs. */
export const holdsPrivateKey = ({ text }: RenderedFile): boolean => {
  let tail = '';
  for (const piece of chunkTexts(text)) {
    const seen = tail + piece;
    if (KEY.test(seen)) return true;
    tail = seen.slice(-OVERLAP);
  }
  return false;
};

/** The encoded content of a file, in parts that each fit into one object. */
export interface EncodedFile {
  readonly compressed: boolean;
  readonly contents: readonly string[];
}

/** Text as it is, when one object holds it even with every character escaped as JSON wants it; else undefined. */
export const plainContent = (
  { text }: RenderedFile,
  partBytes: number,
): EncodedFile | undefined => {
  const limit = (partBytes / 3) * 4;
  if (text.size > limit) return undefined;
  const content = chunkText(text);
  return Buffer.byteLength(JSON.stringify(content)) > limit
    ? undefined
    : { compressed: false, contents: [content] };
};

/** Compressed bytes in parts, each base64 of its own. */
export const compressedContent = (bytes: Uint8Array, partBytes: number): EncodedFile => {
  const contents: string[] = [];
  for (let from = 0; from < bytes.length; from += partBytes) {
    contents.push(Buffer.from(bytes.subarray(from, from + partBytes)).toString('base64'));
  }
  return { compressed: true, contents };
};

/**
 * Name of the object of one part, counted from 1. The first part of the main file is called like the configuration; all
 * other names end with a digest over everything they stand for, so that no two paths share one, whatever they hold.
 */
export const objectName = (
  owner: string,
  { resource, path }: PublishedFile,
  part: number,
): string => {
  if (resource === HAPROXY_CFG && part === 1) return owner;
  return `${slug(`${owner}-${path}`)}-${sha256(JSON.stringify([owner, path, part]))}`;
};

/** The readable part of a name; what else a path holds is in the digest. */
const slug = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, 100) || 'file';

/** `spec` of one part. */
export const specOf = (
  { path, checksum, file }: PublishedFile,
  { compressed, contents }: EncodedFile,
  part: number,
): Members => ({
  path,
  checksum,
  size: file.text.size,
  compressed,
  part,
  parts: contents.length,
  content: contents[part - 1] ?? '',
});
