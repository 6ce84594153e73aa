import { map, take } from 'rxjs';
import { globMatches } from '../render/language/patterns.ts';
import { parseConfig, type ParsedConfig } from '../render/config/parse-config.ts';
import type { TemplateConfig } from '../render/config/template-config.ts';
import { testNames } from '../render/validation/run-tests.ts';
import { type KubeObject, objectRef } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import { CONFIG_RESOURCE, settledConfigs } from '../streams/config.ts';
import { directorySource } from '../streams/directory.ts';
import { withLibraries } from './compile.ts';
import type { OneShotOptions } from './compile-options.ts';
import { manifestDirectory } from './manifest-directory.ts';
import { settled, untilStopped } from './one-shot.ts';

/** The tests of one configuration that are to run. */
export interface Suite {
  /** For example `HAProxyTemplateConfig default/haptic`. */
  readonly name: string;
  readonly config: TemplateConfig;
  /** In the order in which they run. */
  readonly tests: readonly string[];
}

/** What a directory holds for `haptic test`. */
export interface Suites {
  readonly suites: readonly Suite[];
  /** What is wrong with the directory and its configurations, and when there is no test. */
  readonly problems: readonly Problem[];
}

/**
 * The tests of all configurations of a directory, each merged over the libraries.
 *
 * @param filter names of tests to run, with `*` and `?`; default all
 * @throws CommandError when it is no directory, and when the user ends it
 */
export const readSuites = async (
  path: string,
  options: OneShotOptions,
  filter = '*',
): Promise<Suites> => {
  const source = directorySource(await manifestDirectory(path), { problemsMs: 0 });
  const found$ = withLibraries(options, (parse) =>
    settledConfigs(source, CONFIG_RESOURCE).pipe(
      map((objects) => objects.map((object) => [object, parseConfig(object, parse)] as const)),
    ),
  ).pipe(take(1));
  const nothing = { value: [], problems: [] };
  const { value, problems } = await untilStopped(settled(source, found$), options.signal, nothing);
  // That only one configuration can be in use is no matter here.
  const others = problems.filter(({ reason }) => reason !== 'SurplusConfig');
  if ('ok' in value) return { suites: [], problems: [...others, ...value.problems] };
  return told(readings(value), filter, others);
};

/** One configuration object as it was read. */
interface Reading {
  readonly name: string;
  readonly object: KubeObject;
  readonly parsed: ParsedConfig;
  readonly tests: readonly string[];
}

const readings = (found: readonly (readonly [KubeObject, ParsedConfig])[]): readonly Reading[] =>
  found.map(([object, parsed]) => {
    const { namespace = '', name } = object.metadata;
    return {
      name: `HAProxyTemplateConfig ${namespace}/${name}`,
      object,
      parsed,
      tests: parsed.ok ? testNames(parsed.config) : [],
    };
  });

const told = (all: readonly Reading[], filter: string, problems: readonly Problem[]): Suites => {
  const suites = all.flatMap(({ name, parsed, tests }): readonly Suite[] => {
    const chosen = tests.filter((test) => globMatches(filter, test));
    return parsed.ok && chosen.length > 0 ? [{ name, config: parsed.config, tests: chosen }] : [];
  });
  const refused = all.flatMap(({ parsed }) => (parsed.ok ? [] : parsed.problems));
  return { suites, problems: [...problems, ...refused, ...withoutTests(all, suites, filter)] };
};

/** Nothing that runs is no success: a wrong directory or a wrong name has to be seen. */
const withoutTests = (
  all: readonly Reading[],
  suites: readonly Suite[],
  filter: string,
): readonly Problem[] => {
  if (all.length === 0) {
    return [noTest('The directory holds no HAProxyTemplateConfig.', 'Name one that does.')];
  }
  const silent = all.filter(({ parsed, tests }) => parsed.ok && tests.length === 0);
  const lacking = silent.map(({ name, object }) => ({
    ...noTest(`${name} has no test.`, 'Write one below spec.validationTests (docs/templates.md).'),
    ...(suites.length > 0 && { severity: 'warning' as const }),
    object: objectRef(object),
  }));
  const known = all.flatMap(({ tests }) => tests);
  if (suites.length > 0 || known.length === 0) return lacking;
  const message = `No test is called ${JSON.stringify(filter)}; there are ${listed(known)}.`;
  return [...lacking, noTest(message, 'Correct --filter.')];
};

/** Names that a message lists. */
const MOST_NAMES = 20;

const listed = (names: readonly string[]): string => {
  const surplus = names.length - MOST_NAMES;
  const first = names.slice(0, MOST_NAMES).join(', ');
  return surplus > 0 ? `${first} and ${String(surplus)} more` : first;
};

const noTest = (message: string, nextStep: string): Problem => ({
  severity: 'error',
  reason: 'NoTests',
  message,
  nextStep,
});
