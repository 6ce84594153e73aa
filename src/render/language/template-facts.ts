/** What is known of a whole set of templates before anything runs. */
import type { Shapes } from './shapes.ts';
import type { Node } from './syntax.ts';

export interface ParsedTemplate {
  readonly source: string;
  readonly root: Node;
}

/** What the checks know about the whole set. */
export interface TemplateFacts {
  /** Names of globals, and what they can have. */
  readonly globals: Shapes;
  /** Snippets by name or glob; undefined for a name that does not exist. */
  readonly find: (name: string) => readonly ParsedTemplate[] | undefined;
  readonly snippetNames: readonly string[];
  readonly maps: readonly string[];
}
