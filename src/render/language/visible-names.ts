/** Which names a piece of a template sees, and what is known of them. */
import { boundIn, importsIn, namesOf } from './bindings.ts';
import type { TemplateFacts } from './template-facts.ts';
import { nearest } from './failure.ts';
import { ANY, withMembers, type Shape, type Shapes } from './shapes.ts';
import type { FromImport, Node } from './syntax.ts';

type Find = TemplateFacts['find'];

/**
 * Names that a body sees: those around it, what is bound for it, and its own. Of its own only imports are known, and only
 * where nothing else has the same name.
 */
export const namesWithin = (
  body: Node,
  { around, given = [] }: { around: Shapes; given?: Iterable<readonly [string, Shape]> },
  find: Find,
): Shapes => {
  const own = boundIn(body);
  const imported = importsIn(body).filter(([name]) => own.indexOf(name) === own.lastIndexOf(name));
  return new Map<string, Shape>([
    ...around,
    ...given,
    ...own.map((name) => [name, ANY] as const),
    ...imported.map(([name, snippet]) => [name, moduleShape(snippet, find)] as const),
  ]);
};

const moduleShape = (name: string, find: Find): Shape => {
  const [snippet] = find(name) ?? [];
  return snippet === undefined ? ANY : withMembers(boundIn(snippet.root));
};

/** Names that are imported from a snippet which does not define them. */
export const undefinedImports = (
  { template, names }: FromImport,
  find: Find,
): readonly (readonly [Node, string])[] => {
  const name = template.typename === 'Literal' ? String(template.value) : '';
  const [snippet] = find(name) ?? [];
  if (snippet === undefined) return [];
  const defined = boundIn(snippet.root);
  return names.children.flatMap((imported) => {
    const [known] = namesOf([imported.typename === 'Pair' ? imported.key : imported]);
    return known === undefined || defined.includes(known)
      ? []
      : [
          [
            imported,
            `the snippet "${name}" does not define "${known}"${nearest(known, defined)}`,
          ] as const,
        ];
  });
};
