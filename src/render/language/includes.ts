/** Tags that bring in other templates, as closures. */
import {
  placeOf,
  type FindSnippets,
  type Statement,
  type StatementContext,
} from './compile-context.ts';
import { TemplateFailure, type Place } from './failure.ts';
import { Scope, nested, type Run } from './run.ts';
import type { SlotRequest } from './slots.ts';
import type { FromImport, Import, Include, Name, Node, Pair } from './syntax.ts';
import type { Inclusion } from './text.ts';
import { emptyRecord } from './values.ts';
import { ItemWriter } from './writer.ts';

type Compile<N> = (node: N, context: StatementContext) => Statement;

const literalName = (node: Node): string => (node.typename === 'Literal' ? String(node.value) : '');

const inclusion = ({ source, line }: Place, around: Inclusion | undefined): Inclusion => ({
  source,
  line,
  around,
});

/** The `include` tag: snippets by name or glob, which see the names around it. */
export const compileInclude: Compile<Include> = (node, { source, find }) => {
  const name = literalName(node.template);
  const isHook = name.includes('*');
  const place = placeOf(node.template, source);
  let snippets: readonly { readonly run: Statement }[] | undefined;
  let last: Inclusion | undefined;
  return (run) => {
    snippets ??= find(name) ?? [];
    // Cells that come here in one way, ten thousand perhaps, share the record of it.
    if (last === undefined || last.around !== run.out.via) last = inclusion(place, run.out.via);
    const via = last;
    for (const snippet of snippets) {
      const { atLineStart } = run.out;
      run.out.within(via, () => {
        nested(run, place, () => snippet.run({ ...run, scope: new Scope(run.scope, true) }));
      });
      // Whoever wrote it: a snippet that forgets its last line feed must not swallow the line after it.
      if (isHook && atLineStart && !run.out.atLineStart) run.out.write('\n', place);
    }
  };
};

/** Runs a snippet for what it binds; it sees the globals only, and what it prints is dropped. */
const exportsOf = (name: string, place: Place, find: FindSnippets) => (run: Run) => {
  const scope = new Scope(run.cell.globals, true);
  const [snippet] = find(name) ?? [];
  nested(run, place, () => snippet?.run({ ...run, scope, out: new ItemWriter<SlotRequest>() }));
  return scope.own();
};

/** The `import` tag: what a snippet binds, as one name. */
export const compileImport: Compile<Import> = (node, { source, find }) => {
  const load = exportsOf(literalName(node.template), placeOf(node.template, source), find);
  const target = node.target.typename === 'Symbol' ? node.target.value : '';
  return (run) => {
    const record = emptyRecord();
    for (const [name, value] of load(run)) record[name] = value;
    run.scope.bind(target, record);
  };
};

/** The `from … import` tag: some names that a snippet binds. */
export const compileFromImport: Compile<FromImport> = (node, { source, find }) => {
  const load = exportsOf(literalName(node.template), placeOf(node.template, source), find);
  const children: readonly (Name | Pair)[] = node.names.children;
  const names = children.map((name): [string, string] => {
    if (name.typename === 'Symbol') return [name.value, name.value];
    const [from, to] = [name.key, name.value];
    return [from.typename === 'Symbol' ? from.value : '', to.typename === 'Symbol' ? to.value : ''];
  });
  const place = placeOf(node, source);
  return (run) => {
    const exported = load(run);
    for (const [name, alias] of names) {
      if (!exported.has(name)) {
        const nextStep = 'Import a macro or variable that the snippet defines at its top level.';
        throw new TemplateFailure(`the snippet does not define "${name}"`, { place, nextStep });
      }
      run.scope.bind(alias, exported.get(name));
    }
  };
};
