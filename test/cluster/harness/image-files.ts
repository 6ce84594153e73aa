/**
 * From the list of what is in an image (`images/contents.json`) to the files themselves.
 */
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { runProgram } from '../../../tools/setup/run-program.js';
import type { LayerEntry } from './oci-image.ts';
import type { Packages } from './packages.ts';
import { REPOSITORY } from './places.ts';

/** A file of an image: one of the repository, or a program with what it needs to run. */
export type ImageFile =
  | { readonly from: string; readonly to: string }
  | { readonly program: string; readonly to: string };

/** One image of `images/contents.json`. */
export interface ImageContents {
  /** Without a tag when the tag says what is in it. */
  readonly name: string;
  /** The recipe that makes the same image for users; none for what only tests use. */
  readonly dockerfile?: string;
  readonly user: string;
  readonly entrypoint: readonly string[];
  readonly stopSignal?: string;
  readonly files: readonly ImageFile[];
  /** What the recipe has from the image it starts from, as far as the programs need it. */
  readonly base?: readonly ImageFile[];
}

/** Where programs come from. */
export interface ProgramSources {
  readonly packages: Packages;
  /** HAProxy: branch → absolute path. */
  readonly haproxies: Partial<Record<string, string>>;
  /** Folder of our own programs. */
  readonly ownPrograms: string;
}

/** @returns the list of images, by key */
export function imageList(): Readonly<Record<string, ImageContents>> {
  const text = readFileSync(join(REPOSITORY, 'images/contents.json'), 'utf8');
  return JSON.parse(text) as Record<string, ImageContents>;
}

/**
 * @param from path in the repository, a file or a folder
 * @param to where it goes in the image
 * @throws when it is not there
 */
export function repositoryFiles(from: string, to: string): LayerEntry[] {
  const source = join(REPOSITORY, from);
  if (!existsSync(source)) {
    throw new Error(`${from} is in images/contents.json and not there: run "npm run build"`);
  }
  if (!lstatSync(source).isDirectory()) return [{ path: to, content: readFileSync(source) }];
  return readdirSync(source, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return { path: join(to, path.slice(source.length)), content: readFileSync(path) };
    });
}

/**
 * A program and everything it needs: shared libraries and the loader, at the paths where it looks.
 *
 * @param name as in the list
 * @param to where it goes in the image
 * @returns undefined for a branch of HAProxy that cannot be had here
 */
export function programFiles(
  name: string,
  to: string,
  sources: ProgramSources,
): LayerEntry[] | undefined {
  if (name.startsWith('haproxy-')) return haproxyFiles(name.slice('haproxy-'.length), to, sources);
  const source = programPath(name, sources);
  return [executable(to, source), ...sharedLibraries(source)];
}

function programPath(name: string, { packages, ownPrograms }: ProgramSources): string {
  if (name === 'node') return process.execPath;
  if (name === 'busybox') return join(packages.root, 'bin/busybox');
  if (name === 'prometheus' || name === 'promtool') return join(packages.root, 'usr/bin', name);
  return join(ownPrograms, name);
}

/** What `ldd` names. A static program needs nothing, and `ldd` refuses it. */
function sharedLibraries(program: string): LayerEntry[] {
  const { stdout } = runProgram('ldd', [program]);
  const paths = [...stdout.matchAll(/(?:=> )?(\/\S+) \(0x/g)].map(([, path = '']) => path);
  return paths.map((path) => executable(path, path));
}

/** Where HAProxy and its libraries look for each other inside an image. */
const HAPROXY_LIBRARIES = '/usr/local/lib/haproxy';

/**
 * The private copy of HAProxy has the paths of the cache folder written into it; in an image they are
 * others.
 */
function haproxyFiles(
  branch: string,
  to: string,
  { packages, haproxies }: ProgramSources,
): LayerEntry[] | undefined {
  const found = haproxies[branch];
  if (found === undefined) return undefined;
  const libraries = join(dirname(found), '../lib');
  if (!existsSync(libraries)) return [executable(to, found), ...sharedLibraries(found)];
  const names = readdirSync(libraries);
  const loader = names.find((name) => name.startsWith('ld-linux'));
  const folder = mkdtempSync(join(tmpdir(), 'haptic-image-'));
  try {
    const copy = join(folder, basename(found));
    cpSync(found, copy);
    const { ok, stderr } = runProgram(join(packages.root, 'usr/bin/patchelf'), [
      ...['--set-interpreter', join(HAPROXY_LIBRARIES, loader ?? '')],
      ...['--force-rpath', '--set-rpath', HAPROXY_LIBRARIES, copy],
    ]);
    if (!ok) throw new Error(`patchelf failed on HAProxy ${branch}: ${stderr}`);
    const libraryEntries = names.map((name) => {
      return libraryEntry(join(HAPROXY_LIBRARIES, name), join(libraries, name));
    });
    return [executable(to, copy), ...libraryEntries];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function libraryEntry(path: string, source: string): LayerEntry {
  if (lstatSync(source).isSymbolicLink()) return { path, link: readlinkSync(source) };
  return executable(path, source);
}

function executable(path: string, source: string): LayerEntry {
  return { path, content: readFileSync(source), executable: true };
}
