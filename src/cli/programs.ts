import { fileURLToPath } from 'node:url';

/** True in a checkout, where Node strips the types; false in the bundle. */
const fromSource = import.meta.url.endsWith('.ts');

const beside = (inCheckout: string, inBundle: string): string =>
  fileURLToPath(new URL(fromSource ? inCheckout : inBundle, import.meta.url));

/** The command that runs the agent. */
export const agentProgram = (): readonly string[] => [
  process.execPath,
  beside('../../agent/main.ts', './agent.js'),
];

/** The folder of template libraries that come with the program. */
export const librariesDirectory = (): string => beside('../../libraries', '../libraries');
