import { fileURLToPath } from 'node:url';

/** True in a checkout, where Node strips the types; false in the bundle. */
const fromSource = import.meta.url.endsWith('.ts');

const beside = (inCheckout: string, inBundle: string): string =>
  fileURLToPath(new URL(fromSource ? inCheckout : inBundle, import.meta.url));

/** V8 options that keep a small, mostly idle process small: measured 112 MB without, 88 MB with them at 10,000 backends. */
const LEAN = ['--max-semi-space-size=1', '--single-threaded-gc', '--optimize-for-size'];

/** The command that runs the agent. */
export const agentProgram = (): readonly string[] => [
  process.execPath,
  ...LEAN,
  beside('../../agent/main.ts', './agent.js'),
];

/** The JavaScript file of the process that vets configurations. */
export const vetProgram = (): string => beside('../vet.ts', './vet.js');

/** The folder of template libraries that come with the program. */
export const librariesDirectory = (): string => beside('../../libraries', '../libraries');
