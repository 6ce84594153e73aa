/**
 * OCI images without an engine: files in, an archive out that containerd, podman, docker and
 * `kind load image-archive` take.
 *
 * @see https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md
 */
import { createHash } from 'node:crypto';
import { closeSync, openSync, writeSync } from 'node:fs';

/** One entry of a layer. Folders on the way to it are made, readable for everybody. */
export interface LayerEntry {
  /** Absolute path inside the image. */
  readonly path: string;
  /** Content of a file; undefined for a symbolic link. */
  readonly content?: Buffer;
  /** Where a symbolic link leads. */
  readonly link?: string;
  /** Whether a file may be executed. Default: false. */
  readonly executable?: boolean;
}

/** What a container of the image runs as. Fields as in the image configuration. */
export interface ImageConfig {
  readonly user: string;
  readonly entrypoint: readonly string[];
  readonly stopSignal?: string;
}

/** One layer: an uncompressed tar. Equal files give equal bytes. */
export interface Layer {
  readonly tar: Buffer;
  /** `sha256:…` */
  readonly digest: string;
}

/** What {@link writeArchive} writes. */
export interface Image {
  /** Names with tags that the image gets. */
  readonly names: readonly string[];
  readonly config: ImageConfig;
  readonly layers: readonly Layer[];
}

const BLOCK = 512;

/** Packs entries in the order of their paths, with all times at zero and everything owned by root. */
export function packLayer(entries: readonly LayerEntry[]): Layer {
  const parts: Buffer[] = [];
  const folders = new Set<string>(['']);
  const addFolder = (path: string): void => {
    if (folders.has(path)) return;
    addFolder(path.slice(0, path.lastIndexOf('/')));
    folders.add(path);
    const mode = path === '/tmp' ? 0o1777 : 0o755;
    parts.push(header(`${path.slice(1)}/`, { type: '5', mode }));
  };
  for (const entry of [...entries].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    addFolder(entry.path.slice(0, entry.path.lastIndexOf('/')));
    parts.push(...packEntry(entry));
  }
  const tar = Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]);
  return { tar, digest: sha256(tar) };
}

/**
 * The architecture of images that are made on this machine, by the name that Go gives it.
 *
 * @param arch default: this machine's
 */
export function imageArchitecture(arch: string = process.arch): string {
  return arch === 'x64' ? 'amd64' : arch;
}

/** Writes an image as an archive that holds an OCI layout. */
export function writeArchive(path: string, { names, config, layers }: Image): void {
  const configuration = json({
    architecture: imageArchitecture(),
    os: 'linux',
    config: {
      User: config.user,
      Entrypoint: config.entrypoint,
      WorkingDir: '/',
      Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
      ...(config.stopSignal === undefined ? {} : { StopSignal: config.stopSignal }),
    },
    rootfs: { type: 'layers', diff_ids: layers.map((layer) => layer.digest) },
  });
  const manifest = json({
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: describe('application/vnd.oci.image.config.v1+json', configuration),
    layers: layers.map(({ tar }) => describe('application/vnd.oci.image.layer.v1.tar', tar)),
  });
  const index = json({
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    manifests: names.map((name) => ({
      ...describe('application/vnd.oci.image.manifest.v1+json', manifest),
      annotations: {
        'io.containerd.image.name': name,
        'org.opencontainers.image.ref.name': name,
      },
    })),
  });
  const blobs = [manifest, configuration, ...layers.map(({ tar }) => tar)];
  const file = openSync(path, 'w');
  try {
    const add = (name: string, content: Buffer): void => {
      for (const part of packFile(name, { content, mode: 0o644 })) writeSync(file, part);
    };
    add('oci-layout', json({ imageLayoutVersion: '1.0.0' }));
    add('index.json', index);
    for (const blob of blobs) add(`blobs/${sha256(blob).replace(':', '/')}`, blob);
    writeSync(file, Buffer.alloc(2 * BLOCK));
  } finally {
    closeSync(file);
  }
}

function packEntry({ path, content, link, executable = false }: LayerEntry): Buffer[] {
  const name = path.slice(1);
  if (link !== undefined) return [header(name, { type: '2', mode: 0o777, link })];
  return packFile(name, { content: content ?? Buffer.alloc(0), mode: executable ? 0o755 : 0o644 });
}

function packFile(name: string, file: { content: Buffer; mode: number }): Buffer[] {
  const { content, mode } = file;
  const padding = (BLOCK - (content.length % BLOCK)) % BLOCK;
  return [header(name, { type: '0', mode, size: content.length }), content, Buffer.alloc(padding)];
}

interface HeaderFields {
  /** Of the ustar format: 0 a file, 2 a symbolic link, 5 a folder. */
  readonly type: '0' | '2' | '5';
  readonly mode: number;
  readonly size?: number;
  readonly link?: string;
}

/**
 * One header of the ustar format.
 *
 * @see https://pubs.opengroup.org/onlinepubs/9799919799/utilities/pax.html
 */
function header(name: string, { type, mode, size = 0, link = '' }: HeaderFields): Buffer {
  if (Buffer.byteLength(name) > 100 || Buffer.byteLength(link) > 100) {
    throw new Error(`${name}: a path of more than 100 bytes does not fit into the archive`);
  }
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, digits: number): string =>
    `${value.toString(8).padStart(digits, '0')}\0`;
  block.write(name, 0);
  block.write(octal(mode, 7), 100);
  block.write(octal(0, 7), 108);
  block.write(octal(0, 7), 116);
  block.write(octal(size, 11), 124);
  block.write(octal(0, 11), 136);
  block.write(' '.repeat(8), 148);
  block.write(type, 156);
  block.write(link, 157);
  block.write('ustar\0' + '00', 257);
  block.write(`${sumOf(block).toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

function sumOf(block: Buffer): number {
  return block.reduce((total, byte) => total + byte, 0);
}

function describe(mediaType: string, blob: Buffer): object {
  return { mediaType, digest: sha256(blob), size: blob.length };
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

function sha256(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}
