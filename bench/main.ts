import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type RenderFigures, measureGrowth, measureRender, SHARING, warmUp } from './render.ts';
import { measureStandalone, type StandaloneFigures } from './standalone.ts';

const HELP = `usage: npm run bench -- [--n N[,N…]] [--json FILE] [--endpoint-rounds N] [--ingress-rounds N] [--storm] [--render-only]

Measures rendering alone and the whole program over N applications (default 100, 1000, 10000), each an Ingress with a Service
and five endpoints. HAProxy is $HAPROXY. Prints a table against the budgets, and what rendering one change costs at the
largest N compared with N = 100; --json also writes the figures. --storm adds 20 new Ingresses a second for 20 s,
--render-only leaves the whole program out. Times depend on the machine, so none of them is asserted; a render of one changed
object that costs more than twice as much at the largest N as at N = 100 ends with exit status 1.
`;

const { values } = parseArgs({
  options: {
    n: { type: 'string', default: '100,1000,10000' },
    json: { type: 'string' },
    'endpoint-rounds': { type: 'string', default: '200' },
    'ingress-rounds': { type: 'string', default: '10' },
    storm: { type: 'boolean', default: false },
    'render-only': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

interface Figures {
  readonly render: RenderFigures;
  readonly standalone: StandaloneFigures | undefined;
}

type Row = readonly [what: string, measured: number, budget: number];

/** Budgets of one N; those of 10,000 hold for every N unless another is given. */
const budgetsOf = (n: number) => ({
  endpointP50: 5,
  endpointP99: 25,
  ingressP50: 15,
  ingressP99: 60,
  incrementalP50: 2,
  fullMs: 1_000,
  coldStartMs: n <= 1_000 ? 1_200 : 4_000,
  controllerMiB: n <= 1_000 ? 160 : 500,
  agentMiB: 80,
});

const rowsOf = ({ render, standalone }: Figures): readonly Row[] => {
  const budget = budgetsOf(render.n);
  return [
    ['full render, ms', render.fullMs, budget.fullMs],
    ['render of one endpoint change, p50 ms', render.endpoint.p50, budget.incrementalP50],
    ['render of one Ingress change, p50 ms', render.ingress.p50, budget.incrementalP50],
    ['render of one endpoint change, p99 ms', render.endpoint.p99, Infinity],
    ['render of one Ingress change, p99 ms', render.ingress.p99, Infinity],
    [`Secret of ${String(sharing(render.n))} Ingresses, p50 ms`, render.secret.p50, Infinity],
    [`Secret of ${String(sharing(render.n))} Ingresses, p99 ms`, render.secret.p99, Infinity],
    ['label of a Namespace, p50 ms', render.namespace.p50, Infinity],
    ['label of a Namespace, p99 ms', render.namespace.p99, Infinity],
    ['digest of the changed file, p50 ms', render.fileDigest.p50, Infinity],
    ['longest stall by a full render, ms', render.fullTurnMs, Infinity],
    ['longest stall by a change, ms', render.changeTurnMs, Infinity],
    ...(standalone === undefined ? [] : standaloneRows(standalone, budget)),
  ];
};

const sharing = (n: number): number => Math.min(n, SHARING);

const standaloneRows = (
  standalone: StandaloneFigures,
  budget: ReturnType<typeof budgetsOf>,
): readonly Row[] => [
  ['cold start to first applied, ms', standalone.coldStartMs, budget.coldStartMs],
  ['endpoint change → applied, p50 ms', standalone.endpointApplied.p50, budget.endpointP50],
  ['endpoint change → applied, p99 ms', standalone.endpointApplied.p99, budget.endpointP99],
  ['reloads by endpoint changes', standalone.reloads.endpoint, 0],
  ['new Ingress → first 200, p50 ms', standalone.ingressServed.p50, budget.ingressP50],
  ['new Ingress → first 200, p99 ms', standalone.ingressServed.p99, budget.ingressP99],
  ['reloads by new Ingresses', standalone.reloads.ingress, 0],
  ...stormRows(standalone.storm),
  ['controller memory, MiB', standalone.controllerMiB, budget.controllerMiB],
  ['agent memory, MiB', standalone.agentMiB, budget.agentMiB],
  ['event loop delay, p99 ms', standalone.eventLoopDelayP99Ms, Infinity],
];

const stormRows = (storm: StandaloneFigures['storm']): readonly Row[] =>
  storm === undefined
    ? []
    : [
        ['20 new Ingresses a second, p50 ms', storm.p50, 30],
        ['20 new Ingresses a second, p99 ms', storm.p99, 150],
      ];

/** At most this much more may the render of one changed object cost at the largest N than at N = 100. */
const MOST_GROWTH = 2;
const SMALL = 100;

/** What a change costs at the largest N compared with N = 100; whether it follows the change and not the world. */
const printGrowth = async (sizes: readonly number[]): Promise<boolean> => {
  const largest = Math.max(...sizes);
  if (!sizes.includes(SMALL) || largest === SMALL) return true;
  const { endpoint, ingress } = await measureGrowth(SMALL, largest);
  process.stdout.write(`\nN = ${String(largest)} compared with N = ${String(SMALL)}, in turns\n`);
  printRow(['render of one endpoint change, times', endpoint, MOST_GROWTH]);
  printRow(['render of one Ingress change, times', ingress, MOST_GROWTH]);
  return Math.max(endpoint, ingress) <= MOST_GROWTH;
};

const print = (figures: Figures): void => {
  process.stdout.write(`\nN = ${String(figures.render.n)}\n`);
  for (const row of rowsOf(figures)) printRow(row);
};

const printRow = ([what, measured, budget]: Row): void => {
  const verdict = measured <= budget ? '' : 'missed';
  const columns = [
    what.padEnd(42),
    measured.toFixed(1).padStart(10),
    budgetText(budget).padStart(10),
    verdict,
  ];
  process.stdout.write(`${columns.join('  ').trimEnd()}\n`);
};

const budgetText = (budget: number): string => (budget === Infinity ? '-' : String(budget));

if (values.help) process.stdout.write(HELP);
else {
  const haproxy = process.env['HAPROXY'] ?? '';
  if (!values['render-only']) {
    if (haproxy === '') throw new Error('HAPROXY names no HAProxy');
    // Memory and start are those of the bundles, which is what runs in an image.
    execFileSync(process.execPath, [fileURLToPath(new URL('../tools/build.ts', import.meta.url))]);
  }
  const all: Figures[] = [];
  await warmUp();
  const sizes = values.n.split(',').map(Number);
  for (const n of sizes) {
    process.stderr.write(`measuring N = ${String(n)} …\n`);
    const render = await measureRender(n);
    const standalone = values['render-only']
      ? undefined
      : await measureStandalone(n, {
          haproxy,
          endpointRounds: Number(values['endpoint-rounds']),
          ingressRounds: Number(values['ingress-rounds']),
          storm: values.storm,
        });
    all.push({ render, standalone });
    print({ render, standalone });
  }
  const followsTheChange = await printGrowth(sizes);
  if (values.json !== undefined)
    await writeFile(values.json, `${JSON.stringify(all, undefined, 2)}\n`);
  if (!followsTheChange) {
    process.stderr.write('the render of one changed object grows with the number of objects\n');
    process.exitCode = 1;
  }
}
