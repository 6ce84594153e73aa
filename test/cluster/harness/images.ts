/**
 * The images of the test cluster, packed into archives below the cache folder.
 */
import { statSync } from 'node:fs';
import { progress } from '../../../tools/setup/run-program.js';
import { digest, discardOld, keep } from './cache.ts';
import {
  imageList,
  programFiles,
  repositoryFiles,
  type ImageContents,
  type ProgramSources,
} from './image-files.ts';
import { packLayer, writeArchive, type Layer } from './oci-image.ts';

/** One image that is ready to be loaded. */
export interface PackedImage {
  /** Key in `images/contents.json`. */
  readonly key: string;
  /** Names with tags. The first says what is in it, wherever the list gives no tag. */
  readonly names: readonly [string, ...string[]];
  /** Absolute path of the archive. */
  readonly archive: string;
}

/** Tag that always means the newest build of this checkout. It is loaded again with each build. */
const DEVELOPMENT_TAG = 'dev';

/** Archives of one image that stay in the cache: several checkouts use it. */
const KEPT_ARCHIVES = 6;

/** Packs every image of the list whose programs can be had. What has not changed is not packed again. */
export async function packImages(sources: ProgramSources): Promise<PackedImage[]> {
  const packed: PackedImage[] = [];
  const programs = new Map<string, Layer | undefined>(); // several images have the same program
  const programLayer = (name: string, to: string): Layer | undefined => {
    const key = `${name} ${to}`;
    if (programs.has(key)) return programs.get(key);
    const entries = programFiles(name, to, sources);
    const layer = entries === undefined ? undefined : packLayer(entries);
    programs.set(key, layer);
    return layer;
  };
  for (const [key, contents] of Object.entries(imageList())) {
    const layers = layersOf(contents, programLayer);
    if (layers === undefined) progress(`*** no image ${contents.name}: no suite offers it ***`);
    else packed.push(await pack(key, contents, layers));
  }
  return packed;
}

async function pack(key: string, contents: ImageContents, layers: Layer[]): Promise<PackedImage> {
  const { name, user, entrypoint, stopSignal } = contents;
  const config = { user, entrypoint, ...(stopSignal === undefined ? {} : { stopSignal }) };
  const madeFrom = [JSON.stringify({ name, config }), ...layers.map((layer) => layer.digest)];
  const hasTag = name.includes(':');
  const names: [string, ...string[]] = hasTag
    ? [name]
    : [`${name}:${digest(madeFrom).slice(0, 12)}`, `${name}:${DEVELOPMENT_TAG}`];
  const kind = `image-${key}`;
  const archive = await keep({
    kind,
    madeFrom,
    make: (path) => {
      writeArchive(path, { names, config, layers });
      const mebibytes = Math.round(statSync(path).size / 2 ** 20);
      progress(`packed ${names[0]}: ${mebibytes} MiB`);
      return Promise.resolve();
    },
  });
  discardOld(kind, KEPT_ARCHIVES);
  return { key, names, archive };
}

/**
 * One layer for each program, which hardly ever changes and which nodes keep, and one for all files
 * of the repository.
 *
 * @returns undefined when one of the programs cannot be had
 */
function layersOf(
  contents: ImageContents,
  programLayer: (name: string, to: string) => Layer | undefined,
): Layer[] | undefined {
  const files = [...(contents.base ?? []), ...contents.files];
  const programs = files.flatMap((file) => {
    return 'program' in file ? [programLayer(file.program, file.to)] : [];
  });
  const layers = programs.filter((layer) => layer !== undefined);
  if (layers.length < programs.length) return undefined;
  const own = files.flatMap((file) => ('from' in file ? repositoryFiles(file.from, file.to) : []));
  return own.length === 0 ? layers : [...layers, packLayer(own)];
}
