import { runCommand } from './cli/command.ts';
import { diffCommand } from './cli/diff.ts';
import { render } from './cli/render.ts';
import { up } from './cli/up.ts';
import { validate } from './cli/validate.ts';

const OLDEST_NODE = 26;

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    stop.abort(signal);
  });
}

if (Number(process.versions.node.split('.')[0]) < OLDEST_NODE) {
  process.stderr.write(
    `haptic needs Node.js ${String(OLDEST_NODE)} or newer, this is ${process.version}\n`,
  );
  process.exitCode = 2;
} else {
  // The exit status is set, not forced: what still runs (children that end, output that drains) ends first.
  process.exitCode = await runCommand([up, render, diffCommand, validate], process.argv.slice(2), {
    out: (text) => process.stdout.write(text),
    err: (text) => process.stderr.write(text),
    isTerminal: process.stdout.isTTY,
    environment: process.env,
    signal: stop.signal,
  });
}
