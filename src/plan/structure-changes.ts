import { differences, sortedDifferences } from './merkle-map.ts';
import type { Plan, PlanFile, Section } from './plan.ts';
import type { ReloadReasons } from './reload-reasons.ts';
import { isTlsFile } from './runtime-state.ts';

/**
 * Finds what a worker takes from its files only when it starts: sections other than backends, profiles, and files that
 * need a reload.
 *
 * @param running the plan the worker was started from: no operation changes these parts
 */
export function structureChanges(running: Plan, plan: Plan, reasons: ReloadReasons): void {
  const sections = sectionChanges(running.sections, plan.sections, reasons);
  for (const { key, before, after } of sortedDifferences(running.profiles, plan.profiles)) {
    const what = before === undefined ? 'new' : after === undefined ? 'removed' : 'changed';
    reasons.add('profile-changed', `profile ${key}: ${what}`);
  }
  if (sections === 0 && !configExplained(running, plan)) {
    reasons.add(
      'core-changed',
      `${plan.config.path}: text changed outside of all declared sections`,
    );
  }
  for (const { key, before, after } of sortedDifferences(running.files, plan.files)) {
    if ([before, after].every((file) => file === undefined || isTlsFile(file))) continue;
    const change = fileChange(before, after);
    if (change !== undefined) reasons.add('file-changed', `file ${key}: ${change}`);
  }
}

const identity = ({ kind, name }: Section): string => JSON.stringify([kind, name]);
/** Backends are compared one by one elsewhere; here only the place where they stand counts. */
const text = ({ kind, digest }: Section): string => (kind === 'backends' ? '' : digest);

/** Number of differences found. */
function sectionChanges(
  before: readonly Section[],
  after: readonly Section[],
  reasons: ReloadReasons,
): number {
  const sameText = (section: Section, at: number): boolean => {
    const other = before[at];
    return (
      other !== undefined && identity(other) === identity(section) && text(other) === text(section)
    );
  };
  if (before.length === after.length && after.every(sameText)) return 0;
  const names = [
    ...unmatched(after, before).map((section) => `${describe(section)}: new or changed`),
    ...unmatched(before, after, identity).map((section) => `${describe(section)}: removed`),
  ];
  const found = names.length === 0 ? ['order of sections changed'] : names;
  for (const message of found) reasons.add('core-changed', message);
  return found.length;
}

const describe = ({ kind, name }: Section): string =>
  kind === 'profile' ? `defaults ${name}` : `section ${name}`;

/** Sections that have no counterpart on the other side. */
function unmatched(
  sections: readonly Section[],
  others: readonly Section[],
  by: (section: Section) => string = (section) => identity(section) + text(section),
): readonly Section[] {
  const known = new Set(others.map(by));
  return sections.filter((section) => !known.has(by(section)));
}

/** True when some backend's text is another one, or the file is the same: its digest may have to be computed. */
function configExplained(running: Plan, plan: Plan): boolean {
  if (running.config.path !== plan.config.path) return false;
  for (const { before, after } of differences(running.backends, plan.backends)) {
    if (before?.text !== after?.text) return true;
  }
  return running.config.digest === plan.config.digest;
}

function fileChange(before: PlanFile | undefined, after: PlanFile | undefined): string | undefined {
  if (before?.text === after?.text) return undefined;
  if (before?.reloadOnChange !== true && after?.reloadOnChange !== true) return undefined;
  return before === undefined ? 'new' : after === undefined ? 'removed' : 'changed';
}

const filePaths = (plan: Plan): readonly string[] => [
  plan.config.path,
  ...plan.maps.keys(),
  ...plan.files.keys(),
  ...plan.crtLists.keys(),
];

/**
 * Paths of a plan whose content is not what is on disk.
 *
 * @param applied undefined: unknown, so all
 */
export function changedFiles(applied: Plan | undefined, plan: Plan): ReadonlySet<string> {
  if (applied === undefined) return new Set(filePaths(plan));
  const changed = new Set<string>();
  const { config } = applied;
  if (config.path !== plan.config.path || config.digest !== plan.config.digest) {
    changed.add(plan.config.path);
  }
  for (const records of [
    differences(applied.maps, plan.maps),
    differences(applied.files, plan.files),
    differences(applied.crtLists, plan.crtLists),
  ]) {
    for (const { key, before, after } of records) {
      if (after !== undefined && before?.text !== after.text) changed.add(key);
    }
  }
  return changed;
}
