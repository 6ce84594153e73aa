/**
 * Which HAProxy runs, and where the private copies are kept.
 */
import * as fs from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { SOURCES, extractHaproxy, openSource, whyNotDebian } from './debian.js';
import { SetupError, progress, runProgram } from './run-program.js';
import {
  HAPROXY_BRANCHES,
  HAPROXY_FLOOR,
  isSupportedHaproxy,
  parseHaproxyVersion,
} from './version.js';

/**
 * What is known of one branch. `offered`: it can be had, so the tests must run on it. `own`: by
 * `$HAPROXY` or on PATH, which holds for this run only.
 *
 * @typedef {{ offered: boolean, binary?: string, debianVersion?: string, own?: true }} Branch
 * @typedef {{ checkedAt: number, branches: Partial<Record<string, Branch>> }} Offers
 */

const DAY_MS = 24 * 60 * 60 * 1000;

const HOW_TO_GET_ONE = [
  'Install HAProxy 3.0 or newer (Debian 13 has it: apt-get install haproxy; macOS: brew install haproxy)',
  'or name a binary: HAPROXY=/path/to/haproxy',
].join('\n        ');

/** @returns {string} the folder for private HAProxy copies: `$HAPTIC_CACHE`, else the user's cache folder */
export function cacheFolder() {
  const { HAPTIC_CACHE: own, XDG_CACHE_HOME: xdg } = process.env;
  return join(own ?? join(xdg ?? join(homedir(), '.cache'), 'haptic'), 'haproxy');
}

/**
 * One HAProxy to run the product with: `$HAPROXY`, else one on PATH that is new enough, else a
 * private copy, the newest branch that can be had.
 *
 * @returns {string} absolute path
 * @throws {SetupError} saying how to get one
 */
export function findHaproxy() {
  const given = process.env['HAPROXY'] || undefined;
  if (given !== undefined) return checkGiven(given);
  const installed = onPath();
  if (installed !== undefined) return installed;
  const known = readOffers().branches;
  for (const branch of HAPROXY_BRANCHES) {
    const binary = known[branch]?.binary;
    if (binary !== undefined && versionOf(binary) !== undefined) return binary;
  }
  return fetchNewest();
}

/**
 * Every HAProxy that the tests run against; `offers.json` in the cache folder then tells the tests.
 * A branch that `$HAPROXY` or PATH provides is not fetched. Asks the suites once a day, or when a
 * copy is missing.
 *
 * @returns {Partial<Record<string, string>>} branch → absolute path, of those that can be had
 * @throws {SetupError} when the floor branch, or a branch that a suite lists, cannot be had
 */
export function provideAllHaproxies() {
  const own = ownBranch();
  const known = readOffers();
  const { checkedAt, branches } = isFresh(known, own) ? known : refresh(known, own);
  const offers = { checkedAt, branches: { ...branches, ...own } };
  writeOffers(offers);
  for (const branch of HAPROXY_BRANCHES) report(branch, offers.branches[branch]);
  const found = Object.entries(offers.branches).map(([branch, state]) => [branch, state?.binary]);
  return Object.fromEntries(found.filter(([, binary]) => binary !== undefined));
}

/**
 * @param {string} branch
 * @param {Branch | undefined} state
 */
function report(branch, state) {
  if (state?.binary !== undefined) {
    progress(
      `HAProxy ${branch}: ${versionOf(state.binary)?.version ?? 'unknown'} (${state.binary})`,
    );
    return;
  }
  const message = `HAProxy ${branch} is offered by none of the Debian suites`;
  if (branch === HAPROXY_FLOOR) throw new SetupError(`${message}.\n        ${HOW_TO_GET_ONE}`);
  progress(`*** ${message}: the tests will NOT run on ${branch} ***`);
}

/**
 * The branches that the person at the terminal provides.
 *
 * @returns {Partial<Record<string, Branch>>}
 */
function ownBranch() {
  const given = process.env['HAPROXY'] || undefined;
  const binary = given === undefined ? onPath() : checkGiven(given);
  const branch = binary === undefined ? undefined : versionOf(binary)?.branch;
  if (binary === undefined || branch === undefined) return {};
  return { [branch]: { offered: true, binary, own: true } };
}

/**
 * @param {Offers} known
 * @param {Partial<Record<string, Branch>>} own
 */
function isFresh(known, own) {
  if (Date.now() - known.checkedAt > DAY_MS) return false;
  return HAPROXY_BRANCHES.every((branch) => {
    return own[branch] !== undefined || isSettled(known.branches[branch]);
  });
}

/**
 * @param {Branch | undefined} state
 * @returns {boolean} whether the copy is there and runs, or there is none to be had
 */
function isSettled(state) {
  if (state?.binary === undefined) return state?.offered === false;
  return versionOf(state.binary) !== undefined;
}

/**
 * @param {Offers} known
 * @param {Partial<Record<string, Branch>>} own
 * @returns {Offers}
 */
function refresh(known, own) {
  const missing = HAPROXY_BRANCHES.filter((branch) => own[branch] === undefined);
  if (missing.length === 0) return known;
  try {
    const branches = fetchBranches(missing);
    return { checkedAt: Date.now(), branches: { ...known.branches, ...branches } };
  } catch (error) {
    const allThere = missing.every((branch) => isSettled(known.branches[branch]));
    if (!(error instanceof SetupError)) throw error;
    if (!allThere) throw new SetupError(`${error.message}.\n        ${HOW_TO_GET_ONE}`);
    progress(`the Debian suites cannot be asked, going on with what is here. ${error.message}`);
    return known;
  }
}

/**
 * @param {readonly string[]} wanted branches
 * @returns {Partial<Record<string, Branch>>}
 */
function fetchBranches(wanted) {
  /** @type {Partial<Record<string, Branch>>} */
  const branches = {};
  for (const source of SOURCES) {
    const open = wanted.filter((branch) => branches[branch] === undefined);
    Object.assign(branches, fetchFrom(source, open));
  }
  for (const branch of wanted) branches[branch] ??= { offered: false };
  return branches;
}

/**
 * @param {import('./debian.js').Source} source
 * @param {readonly string[]} wanted
 * @param {number} [limit] how many are enough, counted from the first wanted. Default: all
 * @returns {Partial<Record<string, Branch>>} the wanted branches that this source offers
 */
function fetchFrom(source, wanted, limit = wanted.length) {
  const obstacle = whyNotDebian();
  if (obstacle !== undefined) {
    throw new SetupError(`no private HAProxy can be made: ${obstacle}`);
  }
  progress(`asking Debian ${source.name} for HAProxy …`);
  const { root, offered } = openSource(source);
  /** @type {Partial<Record<string, Branch>>} */
  const branches = {};
  try {
    for (const branch of wanted.filter((one) => offered[one] !== undefined).slice(0, limit)) {
      const debianVersion = offered[branch] ?? '';
      const binary = provideCopy(root, debianVersion);
      branches[branch] = { offered: true, debianVersion, binary };
    }
  } finally {
    fs.rmSync(root.folder, { recursive: true, force: true });
  }
  return branches;
}

/**
 * @param {import('./debian.js').AptRoot} root
 * @param {string} debianVersion
 * @returns {string} path of the binary, which has been seen to run
 */
function provideCopy(root, debianVersion) {
  // A folder per exact version: a newer one never changes a binary that is running.
  const destination = join(cacheFolder(), debianVersion.replaceAll(':', '_'));
  const binary = join(destination, 'sbin/haproxy');
  if (versionOf(binary) === undefined) {
    progress(`getting HAProxy ${debianVersion} …`);
    fs.rmSync(destination, { recursive: true, force: true });
    fs.mkdirSync(cacheFolder(), { recursive: true });
    extractHaproxy(root, { debianVersion, destination });
  }
  if (versionOf(binary) === undefined) {
    throw new SetupError(`HAProxy ${debianVersion} was unpacked to ${binary} but does not run`);
  }
  return binary;
}

/** @returns {string} the newest HAProxy that can be had from any suite */
function fetchNewest() {
  /** @type {SetupError | undefined} */
  let failure;
  for (const source of [...SOURCES].reverse()) {
    try {
      const branches = fetchFrom(source, HAPROXY_BRANCHES, 1);
      const found = HAPROXY_BRANCHES.flatMap((branch) => branches[branch]?.binary ?? []);
      const known = readOffers();
      writeOffers({ checkedAt: 0, branches: { ...known.branches, ...branches } });
      if (found[0] !== undefined) return found[0];
    } catch (error) {
      if (!(error instanceof SetupError)) throw error;
      failure = error;
      if (error.isOffline) break; // the other suites are on the same mirror
    }
  }
  throw new SetupError(
    `${failure?.message ?? 'no Debian suite offers HAProxy'}.\n        ${HOW_TO_GET_ONE}`,
  );
}

/**
 * @param {string} binary
 * @returns {string}
 */
function checkGiven(binary) {
  const version = versionOf(binary);
  if (version === undefined) throw new SetupError(`HAPROXY=${binary} is not a HAProxy that runs`);
  if (isSupportedHaproxy(version)) return binary;
  throw new SetupError(`HAPROXY=${binary} is ${version.version}; 3.0 or newer is needed`);
}

/** @returns {string | undefined} a HAProxy on PATH that is new enough */
function onPath() {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  // Debian keeps it where a normal user's PATH does not look.
  for (const folder of [...folders, '/usr/sbin', '/usr/local/sbin']) {
    const binary = join(folder, 'haproxy');
    if (folder !== '' && isExecutable(binary) && isSupportedHaproxy(versionOf(binary))) {
      return binary;
    }
  }
  return undefined;
}

/** @param {string} path */
function isExecutable(path) {
  try {
    fs.accessSync(path, fs.constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * @param {string} binary
 * @returns {ReturnType<typeof parseHaproxyVersion>} undefined when it does not run
 */
function versionOf(binary) {
  const result = runProgram(binary, ['-v'], { timeoutMs: 10_000 });
  return result.ok ? parseHaproxyVersion(result.stdout) : undefined;
}

/** @returns {Offers} nothing known when the file is missing or damaged */
function readOffers() {
  try {
    const { checkedAt, branches } = JSON.parse(fs.readFileSync(offersPath(), 'utf8'));
    const copies = Object.entries(branches).filter(([, { own }]) => own !== true);
    return { checkedAt, branches: Object.fromEntries(copies) };
  } catch {
    return { checkedAt: 0, branches: {} };
  }
}

/** @param {Offers} offers */
function writeOffers(offers) {
  const path = offersPath();
  fs.mkdirSync(cacheFolder(), { recursive: true });
  fs.writeFileSync(`${path}.${process.pid}`, `${JSON.stringify(offers, null, 2)}\n`);
  fs.renameSync(`${path}.${process.pid}`, path);
}

function offersPath() {
  return join(cacheFolder(), 'offers.json');
}
