/** Settings: values that the configuration hands to templates as `extraContext`. */
import { nameOfKey } from './compile-context.ts';
import { TemplateFailure } from './failure.ts';
import { describe, type FunCall, type Node } from './syntax.ts';
import { kindOf } from './values.ts';

/** The setting that an expression reads, such as `extraContext.timeouts.client`, whatever its default; else undefined. */
export const settingOf = (node: Node): string | undefined => {
  switch (node.typename) {
    case 'LookupVal':
      return rootOf(node) === 'extraContext' ? describe(node) : undefined;
    case 'Group':
      return node.children[0] === undefined ? undefined : settingOf(node.children[0]);
    case 'Filter': {
      const [first] = node.args.children;
      return node.name.value === 'default' && first !== undefined ? settingOf(first) : undefined;
    }
    default:
      return undefined;
  }
};

/** The variable that a chain of look-ups begins with. */
export const rootOf = (node: Node): string | undefined => {
  if (node.typename === 'LookupVal') return rootOf(node.target);
  return node.typename === 'Symbol' ? node.value : undefined;
};

/** A setting has a type that the template cannot use: the configuration is what has to be mended. */
export const wrongSetting = ({
  setting,
  value,
  expected,
  or = '',
}: WrongSetting): TemplateFailure =>
  new TemplateFailure(`the configuration's ${setting} is ${kindOf(value)}, not ${expected}`, {
    field: setting,
    nextStep: mend(setting, or),
    reason: 'InvalidSetting',
  });

interface WrongSetting {
  readonly setting: string;
  readonly value: unknown;
  /** For example `a mapping`. */
  readonly expected: string;
  /** What else could be done. */
  readonly or?: string;
}

/** What messages call a setting → the setting. */
export type SettingNames = ReadonlyMap<string, string>;

/** The settings among the members of the mapping that a function is called with: `backend().balance` → … */
export const settingsOf = ({ name, args }: FunCall): SettingNames => {
  const found = new Map<string, string>();
  for (const argument of args.children) {
    if (argument.typename !== 'Dict') continue;
    for (const { key, value } of argument.children) {
      const setting = settingOf(value);
      if (setting !== undefined) found.set(`${describe(name)}().${nameOfKey(key)}`, setting);
    }
  }
  return found;
};

/** Runs what uses settings; a failure that has no place yet and names one tells that the configuration is the cause. */
export const blaming = <T>(settings: SettingNames, inside: () => T): T => {
  try {
    return inside();
  } catch (error: unknown) {
    if (!(error instanceof TemplateFailure) || error.details.place !== undefined) throw error;
    const [name, setting] = [...settings].find(([words]) => error.message.includes(words)) ?? [];
    if (name === undefined || setting === undefined) throw error;
    const message = error.message.replace(name, `the configuration's ${setting}`);
    throw new TemplateFailure(message, {
      ...error.details,
      field: setting,
      nextStep: mend(setting),
    });
  }
};

const mend = (setting: string, or = ''): string =>
  `Correct spec.templatingSettings.${setting} of the HAProxyTemplateConfig${or === '' ? '' : `, or ${or}`}.`;
