/**
 * The Debian packages of the cluster, unpacked into the cache and never installed.
 */
import { join } from 'node:path';
import { unpackPackages } from '../../../tools/setup/debian.js';
import { progress, runProgram } from '../../../tools/setup/run-program.js';
import { keep } from './cache.ts';
import type { Command } from './run.ts';

/** Where the parts of the unpacked packages are. */
export interface Packages {
  /** Root of the tree that they were unpacked into. */
  readonly root: string;
  /** Folders with programs, for PATH. */
  readonly path: readonly string[];
  /** Folder with the shared libraries that some of them need, for LD_LIBRARY_PATH. */
  readonly libraries: string;
}

/**
 * Suites by name, because what a program needs differs: a newer suite has the containerd and the CNI
 * plugins that know nftables, and they need no more of the C library than the older one has; its
 * runc does.
 */
const SUITES: readonly { readonly suite: string; readonly packages: readonly string[] }[] = [
  { suite: 'forky', packages: ['containerd', 'containernetworking-plugins', 'etcd-server'] },
  {
    suite: 'bookworm',
    packages: [
      ...['runc', 'libseccomp2'],
      // kube-proxy and the portmap plugin call it
      ...['nftables', 'libnftables1', 'libnftnl11', 'libmnl0', 'libjansson4', 'libxtables12'],
      ...['libedit2', 'libbsd0', 'libmd0', 'libgmp10', 'libtinfo6'],
      ...['busybox-static', 'patchelf', 'prometheus'],
    ],
  },
];

/** Downloads and unpacks the packages, unless that was done before. */
export async function providePackages(): Promise<Packages> {
  const root = await keep({
    kind: 'packages',
    madeFrom: [JSON.stringify(SUITES)],
    make: (path) => {
      for (const { suite, packages } of SUITES) {
        progress(`getting ${packages.length} packages of Debian ${suite} for the test cluster …`);
        unpackPackages({ name: suite, suites: [suite] }, packages, path);
      }
      return Promise.resolve();
    },
  });
  const triplet = process.arch === 'arm64' ? 'aarch64-linux-gnu' : 'x86_64-linux-gnu';
  return {
    root,
    path: [join(root, 'usr/sbin'), join(root, 'usr/bin'), join(root, 'bin')],
    libraries: join(root, 'usr/lib', triplet),
  };
}

/** First version of Go that builds the pinned Kubernetes. */
const GO = { major: 1, minor: 26 };

/**
 * @returns a Go that is new enough, with its first arguments: the one on PATH, else an unpacked one
 */
export async function provideGo(): Promise<Command> {
  const found = /go(\d+)\.(\d+)/.exec(runProgram('go', ['env', 'GOVERSION']).stdout);
  const [major, minor] = [Number(found?.[1] ?? 0), Number(found?.[2] ?? 0)];
  if (major > GO.major || (major === GO.major && minor >= GO.minor)) return ['go'];
  const packages = [`golang-${GO.major}.${GO.minor}-go`, `golang-${GO.major}.${GO.minor}-src`];
  const root = await keep({
    kind: 'go',
    madeFrom: packages,
    make: (path) => {
      progress(`no Go ${GO.major}.${GO.minor} on PATH: getting it from Debian …`);
      unpackPackages({ name: 'trixie-backports', suites: ['trixie-backports'] }, packages, path);
      return Promise.resolve();
    },
  });
  return [join(root, `usr/lib/go-${GO.major}.${GO.minor}/bin/go`)];
}
