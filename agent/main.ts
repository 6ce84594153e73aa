import { startAgent } from './agent.ts';
import { messageOf } from './failures.ts';
import { createLog } from './log.ts';
import { HELP, parseCommandLine } from './options.ts';

/** Entry of the program `haptic-agent`: exit status 0 good, 1 bad command line, 2 could not run. */
async function main(): Promise<void> {
  const line = parseCommandLine(process.argv.slice(2));
  if (line.kind === 'help') {
    process.stdout.write(HELP);
    return;
  }
  if (line.kind === 'wrong') {
    process.stderr.write(`haptic-agent: ${line.message}\n\n${HELP}`);
    process.exitCode = 1;
    return;
  }
  const log = createLog((text) => process.stdout.write(text));
  try {
    const agent = await startAgent(line.options, log);
    let stopping = false;
    const stop = (signal: NodeJS.Signals): void => {
      if (stopping) return;
      stopping = true;
      log.info('stopping', { signal });
      void agent.close().finally(() => {
        log.info('stopped');
        process.exit(0);
      });
    };
    process.on('SIGTERM', stop);
    process.on('SIGINT', stop);
  } catch (error: unknown) {
    log.error('the agent cannot run', { error: messageOf(error) });
    process.exitCode = 2;
    setImmediate(() => process.exit(2)); // a listener may still be open
  }
}

await main();
