/** Which templates protect what they are printed for, so that without them it must not be served. */
import type { TemplateConfig } from '../config/template-config.ts';
import { walk, type Node } from './syntax.ts';

interface Found {
  readonly source: string;
  readonly root: Node;
}

/**
 * Sources of the snippets with `protective: true`, and of everything they include.
 *
 * @param find the snippets that a name, which may hold `*`, stands for
 */
export const protectiveSources = (
  { snippets }: Pick<TemplateConfig, 'snippets'>,
  find: (name: string) => readonly Found[] | undefined,
): ReadonlySet<string> => {
  const sources = new Set<string>();
  const add = (name: string): void => {
    for (const { source, root } of find(name) ?? []) {
      if (sources.has(source)) continue;
      sources.add(source);
      for (const included of includesOf(root)) add(included);
    }
  };
  for (const [name, { protective }] of snippets) if (protective === true) add(name);
  return sources;
};

const includesOf = (root: Node): readonly string[] =>
  [...walk(root)].flatMap((node) => {
    const isIncluding =
      node.typename === 'Include' || node.typename === 'Import' || node.typename === 'FromImport';
    return isIncluding && node.template.typename === 'Literal' ? [String(node.template.value)] : [];
  });
