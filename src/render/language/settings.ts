/** Settings: values that the configuration hands to templates as `extraContext`. */
import { TemplateFailure } from './failure.ts';
import { describe, type Node } from './syntax.ts';
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

/** Runs what uses a setting; a failure without a place tells that the setting is the cause. */
export const blaming = <T>(setting: string | undefined, inside: () => T): T => {
  try {
    return inside();
  } catch (error: unknown) {
    if (setting === undefined || !(error instanceof TemplateFailure)) throw error;
    if (error.details.place !== undefined) throw error;
    const message = error.message.replace('the value', `the configuration's ${setting}`);
    throw new TemplateFailure(message, {
      ...error.details,
      nextStep: mend(setting),
    });
  }
};

const mend = (setting: string, or = ''): string =>
  `Correct spec.templatingSettings.${setting} of the HAProxyTemplateConfig${or === '' ? '' : `, or ${or}`}.`;
