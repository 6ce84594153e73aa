/** Snippets that print nowhere: most often one whose name misses its hook. */
import { nearestName } from '../nearest-name.ts';
import type { Problem } from '../../snapshot/problem.ts';
import { LIBRARY } from '../config/template-config.ts';
import { walk, type Node } from './syntax.ts';

/** A snippet's name, and where it comes from. */
export interface NamedSnippet {
  readonly name: string;
  readonly source: string;
  /** Its tree; undefined for one that is left out because a resource it needs is not watched. */
  readonly root: Node | undefined;
}

/**
 * One warning for each snippet of the user that no template reaches; libraries may bring more than is used.
 *
 * @param reached roots of all templates that are printed somewhere
 */
export const unusedSnippets = (
  snippets: readonly NamedSnippet[],
  reached: ReadonlySet<Node>,
): readonly Problem[] => {
  const unused = snippets.filter(
    ({ source, root }) => root !== undefined && !reached.has(root) && !source.startsWith(LIBRARY),
  );
  if (unused.length === 0) return [];
  const hooks = [...new Set([...reached].flatMap(hooksOf))].sort();
  return unused.map(({ name, source }) => warning(name, source, hooks));
};

/** What a template includes by a name with `*`, without it: `frontend-http-*` is the hook `frontend-http`. */
const hooksOf = (root: Node): readonly string[] =>
  [...walk(root)].flatMap((node) => {
    if (node.typename !== 'Include' || node.template.typename !== 'Literal') return [];
    const name = String(node.template.value);
    return name.endsWith('-*') ? [name.slice(0, -2)] : [];
  });

const warning = (name: string, source: string, hooks: readonly string[]): Problem => {
  const point = /^(.+?)-\d/.exec(name)?.[1] ?? name;
  const hook = nearestName(point, hooks);
  const hint = hook === undefined ? '' : `; the nearest hook is ${hook}`;
  return {
    severity: 'warning',
    reason: 'SnippetNotIncluded',
    message: `The snippet ${name} is included by nobody, so it prints nothing${hint}.`,
    nextStep:
      'Name it <hook>-<NNN>-<name> after a hook in docs/hooks.md, include it by name, or remove it.',
    place: { source, line: 1, column: 1 },
  };
};
