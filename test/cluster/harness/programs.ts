/**
 * The programs that are built from Go modules: Kubernetes, helm, and our own small ones. Versions
 * and check sums are those of `test/cluster/programs/go.mod` and `go.sum`.
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { progress } from '../../../tools/setup/run-program.js';
import { keep } from './cache.ts';
import { provideGo } from './packages.ts';
import { PROGRAMS } from './places.ts';
import { must } from './run.ts';

const KUBERNETES = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'kube-proxy',
  'kubectl',
].map((name) => `k8s.io/kubernetes/cmd/${name}`);
const HELM = 'helm.sh/helm/v3/cmd/helm';
const OWN = ['echo', 'pause'];

/** How often the progress of a long build is shown. */
const PROGRESS_MS = 20_000;

/**
 * Builds Kubernetes and helm, unless they are there. The first time that takes about twenty minutes of
 * one core.
 *
 * @returns folder with kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kube-proxy,
 *   kubectl and helm
 */
export function provideKubernetes(): Promise<string> {
  const modules = [readSource('go.mod'), readSource('go.sum')];
  const flags = linkerFlags(readSource('go.mod').toString());
  return keep({
    kind: 'kubernetes',
    madeFrom: [...modules, flags, process.arch],
    make: (path) => build([...KUBERNETES, HELM], flags, path),
  });
}

/** Builds our own programs, unless they are there. @returns folder with echo and pause */
export function provideOwnPrograms(): Promise<string> {
  const packages = OWN.map((name) => `./${name}`);
  return keep({
    kind: 'own-programs',
    madeFrom: [...OWN.map((name) => readSource(`${name}/main.go`)), process.arch],
    make: (path) => build(packages, '-s -w', path),
  });
}

function readSource(path: string): Buffer {
  return readFileSync(join(PROGRAMS, path));
}

/** Without these the programs say that they are v0.0.0, and the API server refuses to be one. */
function linkerFlags(goMod: string): string {
  const version = (module: string): string => {
    const found = new RegExp(`^\\s*${module} (v\\S+)`, 'm').exec(goMod)?.[1];
    if (found === undefined) throw new Error(`test/cluster/programs/go.mod requires no ${module}`);
    return found;
  };
  const kubernetes = version('k8s.io/kubernetes');
  const [major = '', minor = ''] = kubernetes.slice(1).split('.');
  const settings = {
    gitVersion: kubernetes,
    gitMajor: major,
    gitMinor: minor,
    gitTreeState: 'archive',
  };
  const named = Object.entries(settings).map(([name, value]) => {
    return `-X k8s.io/component-base/version.${name}=${value}`;
  });
  const helm = `-X helm.sh/helm/v3/internal/version.version=${version('helm.sh/helm/v3')}`;
  return ['-s -w', ...named, helm].join(' ');
}

/**
 * One set of flags for every program: `CGO_ENABLED` and `-trimpath` belong to the key of Go's build
 * cache, and with others client-go would be compiled once more.
 */
async function build(packages: readonly string[], flags: string, path: string): Promise<void> {
  const [go, ...first] = await provideGo();
  mkdirSync(path);
  const names = packages.map((name) => name.split('/').at(-1) ?? name).join(', ');
  progress(`building ${names} …`);
  const started = Date.now();
  let compiled: string[] = [];
  const timer = setInterval(() => {
    const seconds = Math.round((Date.now() - started) / 1000);
    const last = compiled.at(-1) ?? 'downloading modules or linking';
    progress(`  ${seconds} s: ${compiled.length} packages compiled, the last is ${last}`);
  }, PROGRESS_MS);
  const options = ['-mod=readonly', '-trimpath', '-v', '-ldflags', flags, '-o', `${path}/`];
  try {
    await must([go, ...first, 'build', ...options, ...packages], {
      cwd: PROGRAMS,
      env: { ...process.env, CGO_ENABLED: '0', GOWORK: 'off' },
      timeoutMs: 45 * 60_000,
      onStderr: (text) => {
        const lines = text.split('\n').filter((line) => /^\S+$/.test(line));
        compiled = [...compiled, ...lines];
      },
    });
  } finally {
    clearInterval(timer);
  }
  progress(`built in ${Math.round((Date.now() - started) / 1000)} s`);
}
