import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { catchError, lastValueFrom, map, of, timeout } from 'rxjs';
import { type ConfigNeeds, NO_NEEDS } from './config-needs.ts';
import { runConfined } from './run-confined.ts';

/** What keeps a check away from the machine it runs on; each is in force or it is not. */
export interface Isolation {
  /** It reaches no network, not even the loopback of the machine. */
  readonly network: boolean;
  /**
   * It sees the files of the render, system libraries and certificates, names of hosts, and accounts where the
   * configuration names one; nothing else, and all of it read-only.
   */
  readonly filesystem: boolean;
  /** It does not run as root, and cannot gain privileges. */
  readonly user: boolean;
  /** Its memory is limited. */
  readonly memory: boolean;
  /** The same for people, with the reason where something is missing. */
  readonly detail: string;
}

/** Where the checker runs. */
export interface Place {
  /** Directory with the files of the render. */
  readonly tree: string;
  /** Empty directory: here a file system for the check alone is put together. */
  readonly root: string;
}

/** What to run in a {@link Sandbox}. */
export interface Confined extends Place {
  readonly command: readonly [string, ...string[]];
  /** Default: nothing beside the tree. */
  readonly needs?: ConfigNeeds;
}

/** How a command is confined on this machine. */
export interface Sandbox {
  readonly isolation: Isolation;
  /** User and group that must own the tree; `undefined`: the user of this process. */
  readonly owner: number | undefined;
  /** The whole command line. */
  wrap(confined: Confined): readonly [string, ...string[]];
}

/** Limits of one check. */
export interface Limits {
  readonly memoryMb: number;
  readonly cpuSeconds: number;
}

/** Options of {@link findSandbox}. */
export interface SandboxOptions extends Place, Limits {
  /** Absolute path of HAProxy. */
  readonly binary: string;
  /** `off`: limits only. */
  readonly isolate: 'auto' | 'off';
  /** Gives the tree to a user, as far as this process may. */
  readonly own: (user: number) => void;
}

/** The whole environment of a check: no secret of this process is among it. */
export const ENVIRONMENT = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };

/** Nobody's user id, from a range that Debian reserves and no package gets; used when this process is root. */
export const CHECK_USER = 65_099;

/**
 * Puts a file system together that holds only what is named, moves into it and drops the old one. Arguments: mount
 * point, tree, second place of the tree or nothing, paths to show, `--`, command. Bind mounts keep the flags of what
 * they show; only further restrictions are asked for, so that it works in a user namespace too.
 */
const PRIVATE_ROOT = `set -e
root=$1 tree=$2 also=$3
shift 3
show() {
  at="$root\${2:-$1}"
  if [ -d "$1" ]; then mkdir -p "$at"; else mkdir -p "\${at%/*}"; : >"$at"; fi
  mount --bind "$1" "$at"
  mount -o remount,bind,ro,nosuid,nodev "$at"
}
mount -t tmpfs -o mode=755,size=1m haptic-check "$root"
while [ "$1" != -- ]; do
  if [ -L "$1" ] && [ -d "$1" ]; then mkdir -p "$root\${1%/*}"; cp -P "$1" "$root$1"; elif [ -e "$1" ]; then show "$1"; fi
  shift
done
shift
show "$tree"
if [ -n "$also" ]; then show "$tree" "$also" 2>/dev/null || :; fi
mkdir -p "$root/dev" "$root/.old"
for device in null zero random urandom; do
  : >"$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s .old/proc "$root/proc"
cd "$root"
pivot_root . .old
cd "$tree"
umount -l /.old
rm /proc
rmdir /.old
mount -o remount,ro /
exec "$@"`;

/**
 * No core dumps, no files above 8 MiB (3.0 keeps its start-up log in one), processor time and address space limited; a
 * shell that knows no `-v` goes on without.
 */
const limited = ({ memoryMb, cpuSeconds }: Limits): readonly string[] => [
  '/bin/sh',
  '-c',
  `ulimit -c 0; ulimit -f 16384; ulimit -t ${cpuSeconds}; ulimit -v ${memoryMb * 1024} 2>/dev/null; exec "$@"`,
  'limits',
];

const NAMESPACES = ['--net', '--ipc', '--uts', '--pid', '--fork', '--kill-child'];
const NO_PRIVILEGES = ['setpriv', '--inh-caps=-all', '--bounding-set=-all', '--no-new-privs'];
const SWITCH_USER = [`--reuid=${CHECK_USER}`, `--regid=${CHECK_USER}`, '--clear-groups'];
const SYSTEM = ['/usr', '/lib', '/lib64', '/lib32', '/bin', '/sbin', '/etc/ssl', '/etc/pki'];
const LOOK_UP = ['/etc/ld.so.cache', '/etc/hosts', '/etc/nsswitch.conf'];

/** Tries what this machine offers, strictest first, by running the binary in it; takes some ten milliseconds. Never rejects. */
export const findSandbox = async (options: SandboxOptions): Promise<Sandbox> => {
  const memory =
    (await failureOf(['/bin/sh', '-c', `ulimit -v ${options.memoryMb * 1024}`])) === undefined;
  const asRoot = process.getuid?.() === 0;
  const candidates = options.isolate === 'off' ? [] : layers(options, { asRoot, memory });
  const missing: string[] = [];
  for (const sandbox of candidates) {
    if (sandbox.owner !== undefined) options.own(sandbox.owner);
    const failure = await failureOf(sandbox.wrap({ ...options, command: trial(options) }));
    if (failure === undefined) return explained(sandbox, missing);
    missing.push(failure);
  }
  if (asRoot) options.own(0);
  return explained(unconfined(options, { asRoot, memory }), missing);
};

/** Sees the tree and starts HAProxy: as whom a check runs must be allowed both. */
const trial = ({ tree, binary }: SandboxOptions): readonly [string, ...string[]] => [
  '/bin/sh',
  '-c',
  'cd "$1" && exec "$2" -v',
  'trial',
  tree,
  binary,
];

interface Machine {
  readonly asRoot: boolean;
  readonly memory: boolean;
}

const layers = (options: SandboxOptions, { asRoot, memory }: Machine): readonly Sandbox[] => {
  const unshare = ['unshare', ...(asRoot ? [] : ['--user', '--map-root-user']), ...NAMESPACES];
  const drop = asRoot ? [...NO_PRIVILEGES, ...SWITCH_USER] : NO_PRIVILEGES;
  const inner = [...drop, ...limited(options)];
  const shown = [...SYSTEM, ...LOOK_UP, ...programFolders(options.binary)];
  const common = { owner: asRoot ? CHECK_USER : undefined };
  const full: Sandbox = {
    ...common,
    isolation: isolation({ network: true, filesystem: true, user: true, memory }),
    wrap: ({ tree, root, needs = NO_NEEDS, command }) => [
      ...first([...unshare, '--mount', '/bin/sh', '-c', PRIVATE_ROOT, 'private-root', root, tree]),
      secondPlace(needs.baseDir, [...shown, tree]),
      ...shown,
      ...needs.systemFiles,
      '--',
      ...inner,
      ...command,
    ],
  };
  const offline: Sandbox = {
    ...common,
    isolation: isolation({ network: true, filesystem: false, user: true, memory }),
    wrap: ({ command }) => first([...unshare, ...inner, ...command]),
  };
  const nobody: Sandbox = {
    ...common,
    isolation: isolation({ network: false, filesystem: false, user: true, memory }),
    wrap: ({ command }) => first([...inner, ...command]),
  };
  return [full, offline, nobody];
};

const unconfined = (limits: Limits, { asRoot, memory }: Machine): Sandbox => ({
  owner: undefined,
  isolation: isolation({ network: false, filesystem: false, user: !asRoot, memory }),
  wrap: ({ command }) => first([...limited(limits), ...command]),
});

const first = (words: readonly string[]): readonly [string, ...string[]] => {
  const [program = '/bin/sh', ...rest] = words;
  return [program, ...rest];
};

const ORDINARY = /^\/(?!(?:dev|proc|sys|\.old)(?:\/|$))[\w@+-][\w./@+-]*$/;

/** A second place that would cover what the check needs is left out: only absolute paths there are missed. */
const secondPlace = (place: string | undefined, shown: readonly string[]): string => {
  const covers = shown.some((path) => path === place || path.startsWith(`${place ?? ''}/`));
  return place === undefined || covers || !ORDINARY.test(place) ? '' : place;
};

/** The folder of the program, and the libraries of a copy that brings its own. */
const programFolders = (binary: string): readonly string[] => {
  if (!existsSync(binary)) return [];
  const folder = dirname(realpathSync(binary));
  if (SYSTEM.some((path) => folder.startsWith(`${path}/`))) return [];
  const libraries = join(dirname(folder), 'lib');
  return existsSync(libraries) ? [folder, libraries] : [folder];
};

const isolation = (parts: Omit<Isolation, 'detail'>): Isolation => ({ ...parts, detail: '' });

const explained = (sandbox: Sandbox, missing: readonly string[]): Sandbox => {
  const { network, filesystem, user, memory } = sandbox.isolation;
  const words = [
    network ? 'no network' : 'network not cut off',
    filesystem ? 'private file system' : 'file system not restricted',
    user ? 'unprivileged user' : 'runs as root',
    memory ? 'memory limited' : 'memory not limited',
    ...missing.map((reason) => `(${reason})`),
  ];
  return { ...sandbox, isolation: { ...sandbox.isolation, detail: words.join(', ') } };
};

const TRIAL_MS = 10_000;

/** Runs a command; `undefined` when it ended well, else why not. */
const failureOf = (commandLine: readonly [string, ...string[]]): Promise<string | undefined> =>
  lastValueFrom(
    runConfined({ commandLine, cwd: '/', env: ENVIRONMENT }).pipe(
      map(({ status, signal, stderr }) =>
        status === 0 ? undefined : (lastLine(stderr) ?? `ended with ${String(status ?? signal)}`),
      ),
      timeout(TRIAL_MS),
      catchError((error: unknown) => of(error instanceof Error ? error.message : String(error))),
    ),
    { defaultValue: 'it did not end' },
  );

const lastLine = (text: string): string | undefined =>
  text.split('\n').findLast((line) => line.trim() !== '');
