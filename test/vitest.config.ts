import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/**
 * Four projects, so that the quick tests can run all the time:
 *
 * - `fast` needs neither HAProxy nor the network: unit, marble, property, golden and type tests;
 * - `integration` starts real HAProxy processes, one test file per worker;
 * - `cluster` needs a Kubernetes cluster, which `npm run test:cluster` brings up; each file has installations of its own;
 * - `cluster-alone`, after that, breaks a part of the cluster that others need, or looks at all that is in it.
 *
 * A test belongs to a project by its folder alone.
 */
export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  cacheDir: '.cache/vite', // nothing but npm writes into node_modules
  test: {
    watch: false,
    allowOnly: false,
    maxWorkers: 2,
    teardownTimeout: 20_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'fast',
          include: ['test/{unit,marbles,property,golden,types,docs}/**/*.test.ts'],
          testTimeout: 15_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'cluster',
          include: ['test/cluster/*.test.ts'],
          testTimeout: 300_000,
          hookTimeout: 300_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'cluster-alone',
          include: ['test/cluster/alone/*.test.ts'],
          testTimeout: 300_000,
          hookTimeout: 300_000,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
