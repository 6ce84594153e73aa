/**
 * Bundles each program into one file of `dist/`: Node refuses to strip types below `node_modules`,
 * so what is installed or put into an image is built. The agent gets no package at all.
 */
import { fileURLToPath } from 'node:url';
import { build, type Metafile } from 'esbuild';

/** Gives CommonJS packages inside an ES module the `require` they expect. */
const REQUIRE = [
  "import { createRequire as createRequireOfBundle } from 'node:module';",
  'const require = createRequireOfBundle(import.meta.url);',
].join('\n');

async function bundle(entryPoint: string, outfile: string): Promise<Metafile> {
  const { metafile } = await build({
    entryPoints: [entryPoint],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node26',
    sourcemap: true,
    legalComments: 'linked',
    metafile: true,
    logLevel: 'warning',
    banner: { js: REQUIRE },
    external: ['chokidar'], // nunjucks asks for it only to watch template files, which we do not
  });
  for (const [path, { bytes }] of Object.entries(metafile.outputs)) {
    if (path.endsWith('.js')) console.log(`${path}: ${Math.round(bytes / 1024)} KiB`);
  }
  return metafile;
}

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
await bundle('src/main.ts', 'dist/haptic.js');
await bundle('src/vet.ts', 'dist/vet.js');
const agent = await bundle('agent/main.ts', 'dist/agent.js');
const foreign = Object.keys(agent.inputs).filter((path) => path.includes('node_modules/'));
if (foreign.length > 0) throw new Error(`the agent bundles packages: ${foreign.join(', ')}`);
