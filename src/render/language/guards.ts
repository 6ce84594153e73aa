/** Members that a template asks for before it uses them. */
import { describe, walk, type Node } from './syntax.ts';

/**
 * Paths of members, as they read in a template, that it tests with `is defined` or `is undefined` or gives to `default` or
 * `coalesce`: what is undefined in one set and not in another.
 */
export const guardedPaths = (root: Node): ReadonlySet<string> => {
  const paths = new Set<string>();
  for (const node of walk(root)) {
    for (const asked of askedIn(node)) {
      for (const path of pathsOf(asked)) paths.add(path);
    }
  }
  return paths;
};

/** What may be undefined where it stands. */
const askedIn = (node: Node): readonly Node[] => {
  if (node.typename === 'Is') {
    const test = node.right.typename === 'Symbol' ? node.right.value : '';
    return test === 'defined' || test === 'undefined' ? [node.left] : [];
  }
  if (node.typename !== 'Filter') return [];
  if (node.name.value === 'coalesce') return node.args.children;
  return node.name.value === 'default' ? node.args.children.slice(0, 1) : [];
};

/** The path and the shorter ones it begins with: `a.b.c` asks for `a.b` too. */
const pathsOf = (node: Node): readonly string[] => {
  if (node.typename === 'Group') return node.children.flatMap(pathsOf);
  return node.typename === 'LookupVal' ? [describe(node), ...pathsOf(node.target)] : [];
};
