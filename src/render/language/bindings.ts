/** What a piece of a template binds and prints literally, found in its syntax tree. */
import { childrenOf, walk, type Node } from './syntax.ts';

/** Names that a piece of a template binds in its own scope. */
export const boundIn = (node: Node): string[] => {
  switch (node.typename) {
    case 'Set':
      return [...namesOf(node.targets), ...childrenOf(node).flatMap(boundIn)];
    case 'Macro':
      return [node.name.value];
    case 'Import':
      return namesOf([node.target]);
    case 'FromImport':
      return namesOf(
        (node.names.children as readonly Node[]).map((name) =>
          name.typename === 'Pair' ? name.value : name,
        ),
      );
    case 'For':
    case 'Cells':
    case 'Caller':
      return [];
    default:
      return childrenOf(node).flatMap(boundIn);
  }
};

/** Imports of a piece of a template in its own scope: the name for the snippet, and the snippet's. */
export const importsIn = (node: Node): (readonly [string, string])[] => {
  switch (node.typename) {
    case 'Import':
      return node.target.typename === 'Symbol' && node.template.typename === 'Literal'
        ? [[node.target.value, String(node.template.value)]]
        : [];
    case 'For':
    case 'Cells':
    case 'Macro':
    case 'Caller':
      return [];
    default:
      return childrenOf(node).flatMap(importsIn);
  }
};

/** Plain names among some nodes. */
export const namesOf = (nodes: readonly Node[]): string[] =>
  nodes.flatMap((node) => (node.typename === 'Symbol' ? [node.value] : []));

/** All text that stands literally in a template. */
export const literalText = (root: Node): string => {
  const parts: string[] = [];
  for (const node of walk(root)) {
    if (node.typename === 'TemplateData') parts.push(String(node.value));
  }
  return parts.join(' ');
};
