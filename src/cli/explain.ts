import { Contributors } from '../render/explain-contributors.ts';
import { explainLine, type Explained, type ExplainSources } from '../render/explain-line.ts';
import { explainObject } from '../render/explain-object.ts';
import type { Problem } from '../snapshot/problem.ts';
import { CommandError, EXIT, UsageError, type Command, type Values } from './command.ts';
import { compileSettings } from './compile.ts';
import { COMPILE_OPTIONS, compileOptions } from './compile-options.ts';
import { renderHere } from './explain-render.ts';
import { lineAsText, objectAsText } from './explain-text.ts';
import { renderDirectory, tellProblems, toldAsJson } from './one-shot.ts';

export const explain: Command = {
  name: 'explain',
  arguments: ['DIR'],
  summary: 'Show what made a line of a rendered file, or what an object made',
  details: [
    'haptic explain DIR --file haproxy.cfg --line 42',
    'haptic explain DIR --object Ingress/shop/web',
    '',
    'Texts of certificates are not shown. Exit status 1 when there is no such line or object, or nothing renders.',
  ].join('\n'),
  options: {
    file: { type: 'string', value: 'PATH', help: 'file as "haptic render" names it' },
    line: { type: 'string', value: 'N', help: 'line of the file, counted from 1' },
    object: {
      type: 'string',
      value: 'KIND/NAMESPACE/NAME',
      help: 'object; KIND/NAME when its kind has no namespaces',
    },
    ...COMPILE_OPTIONS,
  },
  run: async ({ positionals: [path = ''], values, terminal }) => {
    const question = questionOf(values);
    const isJson = values['output'] === 'json';
    const options = await compileOptions(values, terminal);
    // First where it can be killed: what has ended there ends here too.
    const { render: rendered, problems: told } = await renderDirectory(path, options);
    if (rendered === undefined && !told.some(isOfAnObject)) {
      if (isJson) terminal.out(toldAsJson({ problems: told }));
      else tellProblems(told, terminal);
      return EXIT.badInput;
    }
    const render = await renderHere(path, options);
    if (render === undefined) throw new CommandError(cannot(path, told));
    const problems = rendered === undefined ? render.problems : told;
    const { ingressClass, standalone } = compileSettings(options).routing;
    const classes = { ...ingressClass, withoutObject: standalone };
    const contributors = new Contributors(render.snapshot, classes);
    terminal.out(answer(question, { sources: { render, contributors }, problems, isJson }));
    return EXIT.good;
  },
};

const cannot = (path: string, told: readonly Problem[]): string =>
  told.find(isOfAnObject)?.message ?? `${path} changes meanwhile; run it again`;

/** A render that objects have failed has ended, and ends without them; a configuration is what renders them. */
const isOfAnObject = ({ object, severity }: Problem): boolean =>
  object !== undefined && object.kind !== 'HAProxyTemplateConfig' && severity === 'error';

type Question =
  | { readonly type: 'line'; readonly file: string; readonly line: number }
  | { readonly type: 'object'; readonly object: string };

const questionOf = ({ file, line, object }: Values): Question => {
  if (typeof object === 'string') {
    if (file !== undefined || line !== undefined) {
      throw new UsageError('takes either --object, or --file and --line');
    }
    return { type: 'object', object };
  }
  if (typeof file !== 'string' || typeof line !== 'string') {
    throw new UsageError('needs --file and --line, or --object');
  }
  if (!/^[1-9]\d{0,9}$/.test(line)) {
    throw new UsageError('--line takes the number of a line, counted from 1');
  }
  return { type: 'line', file, line: Number(line) };
};

interface Material {
  readonly sources: ExplainSources;
  readonly problems: readonly Problem[];
  readonly isJson: boolean;
}

/** @throws CommandError when what is asked for does not exist */
const answer = (question: Question, { sources, problems, isJson }: Material): string => {
  if (question.type === 'line') {
    const explanation = known(explainLine(sources, question));
    return isJson ? toldAsJson(explanation) : lineAsText(explanation);
  }
  const explanation = known(explainObject(sources, question.object, problems));
  return isJson ? toldAsJson(explanation) : objectAsText(explanation);
};

const known = <T>(explained: Explained<T>): T => {
  if (explained.ok) return explained.explanation;
  throw new CommandError(explained.message, EXIT.badInput);
};
