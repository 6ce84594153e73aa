/**
 * Everything that a cluster needs, in the right order.
 */
import { basename, join } from 'node:path';
import { provideAllHaproxies } from '../../../tools/setup/haproxy.js';
import { SetupError, runProgram } from '../../../tools/setup/run-program.js';
import { lock } from './cache.ts';
import type { Provided } from './daemons.ts';
import { packImages, type PackedImage } from './images.ts';
import { up } from './lifecycle.ts';
import { providePackages } from './packages.ts';
import { REPOSITORY, cacheFolder, stateFolder } from './places.ts';
import { provideKubernetes, provideOwnPrograms } from './programs.ts';
import { whyNoCluster } from './requirements.ts';

/** A cluster that is up, and the images in it. */
export interface Ready {
  readonly provided: Provided;
  readonly images: readonly PackedImage[];
}

/**
 * Downloads and builds what is missing.
 *
 * @throws {SetupError} saying why the cluster cannot run on this machine
 */
export async function provide(): Promise<Provided> {
  const obstacle = whyNoCluster();
  if (obstacle !== undefined) throw new SetupError(`the test cluster cannot run here: ${obstacle}`);
  const packages = await providePackages();
  return { state: stateFolder(), packages, kubernetes: await provideKubernetes() };
}

/** Builds the bundles of this checkout and packs all images. */
export async function makeImages(): Promise<PackedImage[]> {
  const haproxies = provideAllHaproxies();
  const packages = await providePackages();
  const ownPrograms = await provideOwnPrograms();
  const lockFile = join(cacheFolder(), `${basename(stateFolder())}.images`);
  const release = await lock(lockFile, 'the images to be packed');
  try {
    const built = runProgram(process.execPath, ['tools/build.ts'], { cwd: REPOSITORY });
    if (!built.ok) throw new SetupError(`the bundles cannot be built: ${built.stderr}`);
    return await packImages({ packages, haproxies, ownPrograms });
  } finally {
    release();
  }
}

/** Brings the cluster up, or brings its images up to date. */
export async function bringUp(): Promise<Ready> {
  const provided = await provide();
  const images = makeImages();
  await Promise.all([images, up(provided, images)]);
  return { provided, images: await images };
}
