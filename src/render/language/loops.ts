import { placeOf, type ExpressionContext, type Statement } from './compile-context.ts';
import { TemplateFailure, type Place } from './failure.ts';
import { objectOf } from './object-of.ts';
import { Scope } from './run.ts';
import { describe, type For } from './syntax.ts';
import { TrackedCollection, entriesOf, isRecord, kindOf, listOf } from './values.ts';

/**
 * `for x in list` and `for key, value in mapping` (by key, code units); with several names over a list its elements are
 * taken apart.
 */
export const compileFor = (node: For, context: ExpressionContext): Statement => {
  const collection = context.expression(node.arr);
  const names = namesOf(node);
  const body = context.body(node.body);
  const otherwise = node.else_ === null ? undefined : context.body(node.else_);
  const place = placeOf(node.arr, context.source);
  const rowsOf = names.length === 1 ? single(node, place) : several(node, place);
  return (run) => {
    const rows = rowsOf(collection(run));
    if (rows.length === 0) otherwise?.(run);
    for (const [index, row] of rows.entries()) {
      const scope = new Scope(run.scope);
      for (const [position, name] of names.entries()) scope.bind(name, row[position]);
      scope.bind('loop', loopOf(index, rows.length));
      naming(row, () => body({ ...run, scope }));
    }
  };
};

/** What fails for one element of a loop names the object that the element stands for. */
const naming = (row: readonly unknown[], inside: () => void): void => {
  try {
    inside();
  } catch (error: unknown) {
    if (!(error instanceof TemplateFailure)) throw error;
    const found = row.map((value) => objectOf(value)).find((object) => object !== undefined);
    throw error.about(found);
  }
};

type Rows = readonly (readonly unknown[])[];

const namesOf = ({ name }: For): string[] => {
  const names = name.typename === 'Array' ? name.children : [name];
  return names.map((one) => (one.typename === 'Symbol' ? one.value : ''));
};

const single =
  (node: For, place: Place) =>
  (value: unknown): Rows =>
    (listOf(value) ?? refuse(node, place, value)).map((element) => [element]);

const several =
  (node: For, place: Place) =>
  (value: unknown): Rows => {
    if (isRecord(value) || value instanceof TrackedCollection) return entriesOf(value) ?? [];
    const rows = listOf(value) ?? refuse(node, place, value);
    return rows.map((row) => (Array.isArray(row) ? (row as unknown[]) : refuse(node, place, row)));
  };

const refuse = (node: For, place: Place, value: unknown): never => {
  throw new TemplateFailure(`a loop cannot go over ${kindOf(value)}`, {
    place,
    field: describe(node.arr),
    nextStep: 'Go over a list with one name, or over a mapping with two: for key, value in ….',
  });
};

const loopOf = (index: number, length: number): Readonly<Record<string, unknown>> => ({
  index: index + 1,
  index0: index,
  revindex: length - index,
  revindex0: length - index - 1,
  first: index === 0,
  last: index === length - 1,
  length,
});
