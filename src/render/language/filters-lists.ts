/** Filters over lists and mappings. */
import { byCodeUnits } from '../../cells/persistent-map.ts';
import { TemplateFailure } from './failure.ts';
import { compare, equals } from './operators.ts';
import type { Run } from './run.ts';
import { joinBrands, plain, stringOf } from './text.ts';
import {
  emptyRecord,
  entriesOf,
  isTrue,
  kindOf,
  listOf,
  memberOf,
  sizeOf,
  type Arguments,
} from './values.ts';

type ListFilter = (value: unknown, args: Arguments, run: Run) => unknown;

const refuse = (value: unknown, wanted: string): never => {
  throw new TemplateFailure(`the value is ${kindOf(value)}, not ${wanted}`, {
    nextStep: `Use ${wanted} here.`,
  });
};

const list = (value: unknown): readonly unknown[] => listOf(value) ?? refuse(value, 'a list');

const pairs = (value: unknown): readonly (readonly [unknown, unknown])[] =>
  Array.isArray(value)
    ? refuse(value, 'a mapping')
    : (entriesOf(value) ?? refuse(value, 'a mapping'));

/** `metadata.labels.app\.kubernetes\.io/name` as its members; a backslash takes the next dot literally. */
const memberPath = (path: unknown): string[] => {
  const text = stringOf(path) ?? refuse(path, 'a path of members such as "metadata.name"');
  return (text.match(/(?:\\.|[^.\\])+/g) ?? []).map((part) => part.replace(/\\(.)/g, '$1'));
};

const dig = (value: unknown, path: readonly string[], run: Run): unknown =>
  path.reduce<unknown>((target, name) => memberOf(target, name, run), value);

const sortBy: ListFilter = (value, { positional }, run) => {
  const paths = positional.map(memberPath);
  const rows = list(value).map((element) => ({
    element,
    keys: paths.map((path) => dig(element, path, run)),
  }));
  rows.sort((left, right) => {
    for (const [index, key] of left.keys.entries()) {
      const order = compare(key, right.keys[index]);
      if (order !== 0) return order;
    }
    return 0;
  });
  return rows.map(({ element }) => element);
};

const groupBy: ListFilter = (value, { positional: [path] }, run) => {
  const members = memberPath(path);
  const groups = new Map<string, unknown[]>();
  for (const element of list(value)) {
    const key = plain(dig(element, members, run));
    const name = typeof key === 'number' ? String(key) : key;
    if (typeof name !== 'string') return refuse(name, 'a string to group by');
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [element]);
    else group.push(element);
  }
  const record = emptyRecord();
  for (const key of [...groups.keys()].sort(byCodeUnits)) record[key] = groups.get(key);
  return record;
};

const filterBy =
  (wanted: boolean): ListFilter =>
  (value, { positional }, run) => {
    const path = memberPath(positional[0]);
    return list(value).filter((element) => {
      const member = dig(element, path, run);
      return (positional.length > 1 ? equals(member, positional[1]) : isTrue(member)) === wanted;
    });
  };

const unique = (value: unknown): unknown[] => {
  const seen = new Set<unknown>();
  return list(value).filter((element) => {
    const isNew = !seen.has(plain(element));
    seen.add(plain(element));
    return isNew;
  });
};

const merge: ListFilter = (value, { positional }) => {
  const merged = emptyRecord();
  for (const one of [value, ...positional]) {
    for (const [key, member] of pairs(one)) merged[String(key)] = member;
  }
  return merged;
};

const join: ListFilter = (value, { positional: [separator = ''] }) => {
  const parts = list(value);
  const odd = parts.find((part) => !['string', 'number', 'boolean'].includes(typeof plain(part)));
  if (odd !== undefined) return refuse(odd, 'a string, number or boolean');
  const glue = stringOf(separator) ?? refuse(separator, 'a string');
  const joined = joinBrands(parts, glue);
  // A separator that is data takes the brand away.
  return typeof separator === 'string' && glue !== '' ? String(joined) : joined;
};

const first = (value: unknown): unknown => {
  const text = stringOf(value);
  return text === undefined ? list(value)[0] : text.slice(0, 1);
};

const last = (value: unknown): unknown => {
  const text = stringOf(value);
  return text === undefined ? list(value).at(-1) : text.slice(-1);
};

export const LIST_FILTERS: Readonly<Record<string, ListFilter>> = {
  join,
  first,
  last,
  length: (value) => sizeOf(value) ?? refuse(value, 'a list, mapping or string'),
  sort: (value) => [...list(value)].sort(compare),
  reverse: (value) => [...list(value)].reverse(),
  unique,
  sort_by: sortBy,
  group_by: groupBy,
  where: filterBy(true),
  reject: filterBy(false),
  map_attr: (value, { positional: [path] }, run) => {
    const members = memberPath(path);
    return list(value).map((element) => dig(element, members, run));
  },
  keys: (value) => pairs(value).map(([key]) => key),
  values: (value) => pairs(value).map(([, member]) => member),
  merge,
  dig: (value, { positional }, run) =>
    dig(
      value,
      positional.map((name) => stringOf(name) ?? refuse(name, 'the name of a member')),
      run,
    ),
};
