import manifest from '../package.json' with { type: 'json' };
import { tolerateBrokenPipe } from './cli/broken-pipe.ts';
import { runCommand } from './cli/command.ts';
import { diffCommand } from './cli/diff.ts';
import { explain } from './cli/explain.ts';
import { interrupts } from './cli/interrupt.ts';
import { render } from './cli/render.ts';
import { run } from './cli/run.ts';
import { testCommand } from './cli/test.ts';
import { up } from './cli/up.ts';
import { validate } from './cli/validate.ts';

const OLDEST_NODE = 26;

const stop = new AbortController();
const onSignal = interrupts({
  stop,
  exit: (status) => process.exit(status),
  now: () => performance.now(),
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
for (const stream of [process.stdout, process.stderr]) tolerateBrokenPipe(stream);

if (Number(process.versions.node.split('.')[0]) < OLDEST_NODE) {
  process.stderr.write(
    `haptic needs Node.js ${String(OLDEST_NODE)} or newer, this is ${process.version}\n`,
  );
  process.exitCode = 2;
} else {
  // The exit status is set, not forced: what still runs (children that end, output that drains) ends first.
  const commands = [run, up, render, diffCommand, validate, testCommand, explain];
  const program = { commands, version: manifest.version };
  process.exitCode = await runCommand(program, process.argv.slice(2), {
    out: (text) => process.stdout.write(text),
    err: (text) => process.stderr.write(text),
    isTerminal: process.stdout.isTTY,
    errIsTerminal: process.stderr.isTTY,
    environment: process.env,
    signal: stop.signal,
  });
}
