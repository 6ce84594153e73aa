import type { Problem } from '../snapshot/problem.ts';
import type { TestEvent } from '../vetting/test-config.ts';
import type { Call, Terminal } from './command.ts';
import { tellProblems, toldAsJson } from './one-shot.ts';
import { type Progress, progressOn } from './progress.ts';
import { asJson, type RunReport, suiteHeading, summary, testText } from './test-report.ts';

/** Who says what, and where. */
export interface Teller {
  readonly progress: Progress;
  readonly problems: (problems: readonly Problem[]) => void;
  readonly heading: (suite: string) => void;
  readonly event: (event: TestEvent) => void;
  readonly end: (run: RunReport) => void;
}

/** Text comes as the tests end; JSON is one value and comes at the end. */
export const tellerOf = ({ values, terminal }: Call): Teller => {
  const progress = progressOn(terminal);
  if (values['output'] === 'json') return jsonTeller(terminal, progress);
  const problems: Teller['problems'] = (some) => tellProblems(some, terminal);
  return {
    progress,
    problems,
    heading: (suite) => terminal.out(suiteHeading(suite)),
    event: (event) => {
      progress.clear();
      if (event.type === 'Refused') problems(event.problems);
      if (event.type !== 'Tested') return;
      const { report, durationMs } = event;
      terminal.out(testText({ ...report, durationMs }));
    },
    end: (run) => terminal.out(summary(run)),
  };
};

const jsonTeller = (terminal: Terminal, progress: Progress): Teller => ({
  progress,
  problems: () => undefined,
  heading: () => undefined,
  event: () => progress.clear(),
  end: (run) => terminal.out(toldAsJson(asJson(run))),
});
