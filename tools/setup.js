/**
 * Makes a checkout ready to run: `node tools/setup.js NEED`, called by `tools/run.sh`.
 *
 * Plain JavaScript for any Node from 18 on, because it is what fetches the Node of the project.
 * Progress goes to stderr; stdout is the path of the HAProxy to use, or nothing.
 */
import { fileURLToPath } from 'node:url';
import { findHaproxy, provideAllHaproxies } from './setup/haproxy.js';
import { checkNode, providePackages } from './setup/packages.js';
import { SetupError, progress } from './setup/run-program.js';

const root = fileURLToPath(new URL('..', import.meta.url));

/** @type {Partial<Record<string, () => string>>} */
const needs = {
  packages: () => process.env['HAPROXY'] ?? '',
  haproxy: findHaproxy,
  'haproxy-maybe': () => {
    try {
      return findHaproxy();
    } catch (error) {
      if (!(error instanceof SetupError)) throw error;
      progress(error.message);
      return '';
    }
  },
  'haproxy-all': () => {
    provideAllHaproxies();
    return process.env['HAPROXY'] ?? '';
  },
};

const provide = needs[process.argv[2] ?? ''];
if (provide === undefined) throw new Error(`NEED is one of ${Object.keys(needs).join(', ')}`);
try {
  providePackages(root);
  checkNode(root);
  process.stdout.write(provide());
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  progress(error.message);
  process.exitCode = 1;
}
