/**
 * Packages out of Debian's suites, without root and without touching the system: a private apt root
 * downloads them and they are unpacked. HAProxy gets its own loader and library path too, so that it
 * runs on a machine with an older libc.
 */
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SetupError, isOffline, runProgram } from './run-program.js';
import { offeredVersions } from './version.js';

/**
 * @typedef {{ readonly name: string, readonly suites: readonly string[], readonly security?: string }} Source
 * @typedef {{ readonly mirror: string, readonly security: string | undefined }} Archives
 * @typedef {{ readonly folder: string, readonly options: readonly string[] }} AptRoot
 */

/** Where to look, in the order of preference for a branch that several of them offer. @type {readonly Source[]} */
export const SOURCES = [
  { name: 'trixie', suites: ['trixie'], security: 'trixie-security' },
  { name: 'forky', suites: ['forky'] },
  { name: 'sid and experimental', suites: ['sid', 'experimental'] },
];

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
const LOADERS = new Map([
  ['amd64', { triplet: 'x86_64-linux-gnu', loader: 'ld-linux-x86-64.so.2' }],
  ['arm64', { triplet: 'aarch64-linux-gnu', loader: 'ld-linux-aarch64.so.1' }],
]);

/**
 * The archives that the machine's own apt sources name.
 *
 * @param {string} uris what `apt-get update --print-uris` prints
 * @returns {Archives | undefined} undefined when no Debian archive is among them
 */
export function archivesOf(uris) {
  const entries = [...uris.matchAll(/^'([^']+?)\/?\/dists\/([^/]+)\/InRelease'/gm)];
  // A third party may call its suite `bookworm` too, but has no `bookworm-updates`.
  const withUpdates = entries.find(([, , suite = '']) => suite.endsWith('-updates'));
  const named = entries.find(([, uri = '']) => uri.endsWith('/debian'));
  const mirror = (withUpdates ?? named)?.[1];
  if (mirror === undefined) return undefined;
  const security = entries.find(([, , suite = '']) => suite.endsWith('-security'))?.[1];
  return { mirror, security };
}

/** @returns {string | undefined} why this machine cannot get HAProxy from Debian; undefined when it can try */
export function whyNotDebian() {
  if (!LOADERS.has(architecture())) return 'this is not a Debian system on amd64 or arm64';
  if (!existsSync(KEYRING)) return 'the keyring of the Debian archive is not installed';
  return undefined;
}

/**
 * Makes a private apt root for a source and loads its package lists.
 *
 * @param {Source} source
 * @returns {{ root: AptRoot, offered: Partial<Record<string, string>> }} branch → Debian version of HAProxy
 * @throws {SetupError} when the lists cannot be had; a suite that the archive does not serve offers nothing
 */
export function openSource(source) {
  const root = makeAptRoot(source);
  const update = apt(root, ['-qq', 'update']);
  if (!update.ok) {
    if (isNotServed(update.stderr)) return { root, offered: {} };
    rmSync(root.folder, { recursive: true, force: true });
    throw new SetupError(
      `${update.stderr.trim()}\n        The package lists of Debian ${source.name} could not be loaded`,
    );
  }
  const madison = runProgram('apt-cache', [...root.options, 'madison', 'haproxy']);
  return { root, offered: offeredVersions(madison.stdout) };
}

/**
 * Downloads one HAProxy with its libraries and puts it at its final place, whole or not at all.
 * Of two at the same time one wins and both are right.
 *
 * @param {AptRoot} root
 * @param {{ debianVersion: string, destination: string }} what
 * @throws {SetupError} when a package cannot be had or the binary cannot be made to run
 */
export function extractHaproxy(root, { debianVersion, destination }) {
  const { triplet, loader } = LOADERS.get(architecture()) ?? { triplet: '', loader: '' };
  const packages = [`haproxy=${debianVersion}`, 'patchelf', ...librariesOf(root, debianVersion)];
  const tree = join(root.folder, `tree-${debianVersion}`);
  unpack(root, packages, tree);

  const libraries = join(tree, 'usr/lib', triplet);
  const building = `${destination}.${process.pid}`;
  mkdirSync(join(building, 'lib'), { recursive: true });
  mkdirSync(join(building, 'sbin'));
  for (const name of readdirSync(libraries)) {
    const copy = { verbatimSymlinks: true };
    if (name.includes('.so')) cpSync(join(libraries, name), join(building, 'lib', name), copy);
  }
  const binary = join(building, 'sbin/haproxy');
  cpSync(join(tree, 'usr/sbin/haproxy'), binary);
  // patchelf comes from the same suite, so it too needs the loader of that suite. The paths it
  // writes are those of the final place: the master process executes its own path at a reload.
  const patch = ['--set-interpreter', join(destination, 'lib', loader), '--force-rpath'];
  const patched = runProgram(join(libraries, loader), [
    ...['--library-path', libraries, join(tree, 'usr/bin/patchelf')],
    ...[...patch, '--set-rpath', join(destination, 'lib'), binary],
  ]);
  required(patched, 'patchelf failed');
  moveIntoPlace(building, destination);
}

/**
 * Downloads packages of a source and unpacks them; nothing is installed and no script of theirs runs.
 *
 * @param {Source} source
 * @param {readonly string[]} packages names, with everything of them that is needed: no dependency is added
 * @param {string} tree folder to unpack into, made when it is not there
 * @throws {SetupError} when a package cannot be had
 */
export function unpackPackages(source, packages, tree) {
  const { root } = openSource(source);
  try {
    unpack(root, packages, tree);
  } finally {
    rmSync(root.folder, { recursive: true, force: true });
  }
}

/**
 * @param {AptRoot} root
 * @param {readonly string[]} packages
 * @param {string} tree
 */
function unpack(root, packages, tree) {
  const debs = join(root.folder, 'deb');
  rmSync(debs, { recursive: true, force: true });
  mkdirSync(debs);
  required(apt(root, ['-qq', 'download', ...packages], debs), 'packages could not be downloaded');
  for (const deb of readdirSync(debs)) {
    required(runProgram('dpkg-deb', ['-x', join(debs, deb), tree]), `${deb} cannot be unpacked`);
  }
}

/**
 * @param {string} building
 * @param {string} destination
 */
function moveIntoPlace(building, destination) {
  try {
    renameSync(building, destination);
  } catch (error) {
    rmSync(building, { recursive: true, force: true });
    if (!existsSync(join(destination, 'sbin/haproxy'))) throw error;
  }
}

/**
 * The shared libraries that the package needs, directly and through each other.
 *
 * @param {AptRoot} root
 * @param {string} debianVersion
 * @returns {string[]} package names
 */
function librariesOf(root, debianVersion) {
  /** @type {Set<string>} */
  const found = new Set();
  let ask = [`haproxy=${debianVersion}`, 'patchelf'];
  while (ask.length > 0) {
    const shown = runProgram('apt-cache', [...root.options, 'show', '--no-all-versions', ...ask]);
    ask = dependedLibraries(shown.stdout).filter((name) => !found.has(name));
    for (const name of ask) found.add(name);
  }
  return [...found];
}

/**
 * The library packages in the `Depends` fields of package records. Of alternatives the first counts.
 *
 * @param {string} records what `apt-cache show` prints
 * @returns {string[]} names, each once
 */
export function dependedLibraries(records) {
  /** @type {Set<string>} */
  const names = new Set();
  for (const [, list = ''] of records.matchAll(/^Depends: (.*)$/gm)) {
    for (const item of list.split(',')) {
      const [name = ''] = item.trim().split(/[ :|]/);
      if (/^(lib|zlib)/.test(name)) names.add(name);
    }
  }
  return [...names];
}

/** @returns {string} `amd64`, `arm64`, …; empty where there is no dpkg */
function architecture() {
  return runProgram('dpkg', ['--print-architecture']).stdout.trim();
}

/**
 * @param {Source} source
 * @returns {AptRoot}
 */
function makeAptRoot(source) {
  const listed = runProgram('apt-get', ['update', '--print-uris']);
  const archives = archivesOf(listed.stdout);
  if (archives === undefined) {
    throw new SetupError("this machine's apt sources name no Debian archive");
  }
  const folder = mkdtempSync(join(tmpdir(), 'haptic-apt-'));
  for (const path of ['etc', 'lists/partial', 'cache/archives/partial', 'deb']) {
    mkdirSync(join(folder, path), { recursive: true });
  }
  const lines = source.suites.map((suite) => `${archives.mirror} ${suite}`);
  const { security } = source;
  if (security !== undefined && archives.security !== undefined) {
    lines.push(`${archives.security} ${security}`);
  }
  const deb = lines.map((line) => `deb [signed-by=${KEYRING}] ${line} main\n`);
  writeFileSync(join(folder, 'etc/sources.list'), deb.join(''));
  writeFileSync(join(folder, 'etc/preferences'), '');
  writeFileSync(join(folder, 'status'), '');
  return { folder, options: aptOptions(folder) };
}

/**
 * @param {string} folder
 * @returns {string[]}
 */
function aptOptions(folder) {
  return [
    `Dir::Etc::sourcelist=${folder}/etc/sources.list`,
    'Dir::Etc::sourceparts=/dev/null',
    `Dir::Etc::preferences=${folder}/etc/preferences`,
    'Dir::Etc::preferencesparts=/dev/null',
    `Dir::State::lists=${folder}/lists`,
    `Dir::State::status=${folder}/status`,
    `Dir::Cache=${folder}/cache`,
    'Acquire::Languages=none',
    'Acquire::Retries=2',
    'APT::Update::Error-Mode=any',
    // Without this, apt run by root changes to a user who may not enter the private folders.
    `APT::Sandbox::User=${readOwnName()}`,
  ].flatMap((option) => ['-o', option]);
}

/** @returns {string} the name of the user who runs the set-up */
function readOwnName() {
  return runProgram('id', ['-un']).stdout.trim() || 'root';
}

/**
 * @param {AptRoot} root
 * @param {readonly string[]} args
 * @param {string} [cwd]
 */
function apt(root, args, cwd = root.folder) {
  return runProgram('apt-get', [...root.options, ...args], { cwd });
}

/**
 * Whether apt failed only because the archive has no such suite, and not because it is out of reach.
 *
 * @param {string} stderr
 */
function isNotServed(stderr) {
  return /does not have a Release file/.test(stderr) && !isOffline(stderr);
}

/**
 * @param {{ ok: boolean, stderr: string }} result
 * @param {string} failure
 */
function required(result, failure) {
  if (!result.ok) throw new SetupError(`${result.stderr.trim()}\n        ${failure}`);
}
