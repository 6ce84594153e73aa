/**
 * What the numbers of HAProxy and Node mean here. Pure functions.
 */

/** The HAProxy branches that are supported and tested, newest first. */
export const HAPROXY_BRANCHES = /** @type {const} */ (['3.4', '3.2', '3.0']);

/** The branch whose tests must always run. */
export const HAPROXY_FLOOR = '3.0';

/** The lowest Node.js major version that runs the project. */
export const NODE_MAJOR = 26;

/**
 * The version in what `haproxy -v` prints, or in a Debian package version.
 *
 * @param {string} text `HAProxy version 3.0.11-1+deb13u5 2026/11/18 - …`, `3.4-dev3-…`, `1:3.2.26-1`
 * @returns {{ version: string, branch: string, major: number, minor: number } | undefined}
 *   `{ version: '3.0.11', branch: '3.0', … }`; undefined when there is no version in the text
 */
export function parseHaproxyVersion(text) {
  const firstLine = text.split('\n', 1)[0] ?? '';
  const match = /^(?:HA-?Proxy version |\d+:)?(\d+)\.(\d+)([.-][0-9a-z]+)?/.exec(firstLine);
  if (match === null) return undefined;
  const [, major = '', minor = '', rest = ''] = match;
  // `3.2-1` is release 3.2 of a package in its revision 1; only `-dev…` belongs to the version.
  const suffix = rest.startsWith('.') || rest.startsWith('-dev') ? rest : '';
  const branch = `${major}.${minor}`;
  return { version: branch + suffix, branch, major: Number(major), minor: Number(minor) };
}

/**
 * Whether the product runs on this HAProxy: 3.0 or newer.
 *
 * @param {{ major: number } | undefined} version
 */
export function isSupportedHaproxy(version) {
  return version !== undefined && version.major >= 3;
}

/**
 * The major number in what `node --version` prints.
 *
 * @param {string} text such as `v26.12.1`
 * @returns {number} 0 when the text is no version
 */
export function nodeMajor(text) {
  return Number(/^v(\d+)\./.exec(text.trim())?.[1] ?? 0);
}

/**
 * The newest version of each supported branch in what `apt-cache madison haproxy` prints.
 *
 * @param {string} madison lines `haproxy | 3.2.26-1 | URI forky/main amd64 Packages`, newest first
 * @returns {Partial<Record<string, string>>} branch → Debian version
 */
export function offeredVersions(madison) {
  /** @type {Partial<Record<string, string>>} */
  const offered = {};
  for (const line of madison.split('\n')) {
    const debian = line.split('|')[1]?.trim();
    const branch = debian === undefined ? undefined : parseHaproxyVersion(debian)?.branch;
    const supported = HAPROXY_BRANCHES.some((known) => known === branch);
    if (debian !== undefined && branch !== undefined && supported) offered[branch] ??= debian;
  }
  return offered;
}
