/** How much of a template is followed: includes and loops can branch without end. */
import type { Problem } from '../../snapshot/problem.ts';
import { placeOf } from './compile-context.ts';
import type { Node } from './syntax.ts';
import type { ParsedTemplate } from './template-facts.ts';

/** Nodes that are followed inside one node of the top level of the template or of one of its sections. */
const MAX_STEPS = 100_000;
/** Likewise in the whole template. */
const MAX_ALL_STEPS = 2_000_000;

/** Counts nodes; what is left out is told, once for each node of the top level. */
export class StepBudget {
  readonly #source: string;
  readonly #top: ReadonlySet<Node>;
  readonly #unfinished = new Set<Node>();
  #current: Node;
  #steps = 0;
  #allSteps = 0;

  constructor({ source, root }: ParsedTemplate) {
    this.#source = source;
    this.#current = root;
    this.#top = new Set(topOf(root));
  }

  /** Whether the node is still followed. */
  take(node: Node): boolean {
    if (this.#top.has(node)) {
      this.#current = node;
      this.#steps = 0;
    }
    this.#steps += 1;
    this.#allSteps += 1;
    if (this.#steps <= MAX_STEPS && this.#allSteps <= MAX_ALL_STEPS) return true;
    this.#unfinished.add(this.#current);
    return false;
  }

  /** One for each node that was not followed to its end, the whole template only once. */
  warnings(): readonly Problem[] {
    const nodes = [...this.#unfinished];
    const isAll = this.#allSteps > MAX_ALL_STEPS;
    return (isAll ? nodes.slice(0, 1) : nodes).map((node) => ({
      severity: 'warning',
      reason: 'PlacesNotChecked',
      message: `The template branches too often to follow all of it: what prints from here on${isAll ? '' : ', inside this tag,'} may hold emitters that do not fit their places.`,
      nextStep:
        'Use fewer loops and includes inside each other; docs/templates.md tells which emitter fits where.',
      place: placeOf(node, this.#source),
    }));
  }
}

/** What stands at the top level; sections are opened. */
const topOf = (node: Node): readonly Node[] => {
  if (node.typename === 'Section') return topOf(node.body);
  return node.typename === 'Root' || node.typename === 'NodeList'
    ? node.children.flatMap(topOf)
    : [node];
};
