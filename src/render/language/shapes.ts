/** Which members values of a template can have, as far as it is known before anything is rendered. */
import type { ObjectRef } from '../../snapshot/objects.ts';
import type { Server } from '../../plan/plan.ts';
import type { BackendModel, CertificateModel, HostRoutes, PathRoute } from '../../routing/model.ts';
import { nearest } from './failure.ts';
import type { ROUTE_COLLECTIONS } from './route-collections.ts';
import { describe, type Filter, type FunCall, type LookupVal, type Node } from './syntax.ts';

export type Shape =
  | { readonly kind: 'record'; readonly members: ReadonlyMap<string, Shape> }
  /** Any key. */
  | { readonly kind: 'map'; readonly of: Shape }
  | { readonly kind: 'list'; readonly of: Shape }
  /** A string, number or boolean: no members at all. */
  | { readonly kind: 'scalar' }
  | { readonly kind: 'any' };

/** Names with what they can have. */
export type Shapes = ReadonlyMap<string, Shape>;

/** Nothing is known. */
export const ANY: Shape = { kind: 'any' };
const SCALAR: Shape = { kind: 'scalar' };

const record = <Model>(members: Readonly<Record<keyof Model & string, Shape>>): Shape => ({
  kind: 'record',
  members: new Map(Object.entries<Shape>(members)),
});
const mapOf = (of: Shape): Shape => ({ kind: 'map', of });
const listOf = (of: Shape): Shape => ({ kind: 'list', of });

/** A value of which only the names of its members are known. */
export const withMembers = (names: Iterable<string>, member: Shape = ANY): Shape => ({
  kind: 'record',
  members: new Map([...names].map((name) => [name, member])),
});

const OBJECT = record<ObjectRef>({
  ...{ apiVersion: SCALAR, kind: SCALAR, namespace: SCALAR, name: SCALAR, uid: SCALAR },
});
const PATHS = listOf(record<PathRoute>({ path: SCALAR, backend: SCALAR, object: OBJECT }));
const SERVER = record<Server>({
  ...{ name: SCALAR, address: SCALAR, port: SCALAR, weight: SCALAR, state: SCALAR },
  keywords: listOf(SCALAR),
});
const NAMED = { name: SCALAR, object: OBJECT };

const ROUTES = {
  hosts: record<HostRoutes>({
    ...{ host: SCALAR, exact: PATHS, prefix: PATHS, httpsRedirect: SCALAR },
    ...{ defaultBackend: SCALAR, defaultObject: OBJECT },
  }),
  backends: record<BackendModel>({ ...NAMED, mode: SCALAR, servers: listOf(SERVER) }),
  certificates: record<CertificateModel>({ ...NAMED, hosts: listOf(SCALAR), pem: SCALAR }),
} satisfies Record<(typeof ROUTE_COLLECTIONS)[number], Shape>;

/** `routes`. */
export const ROUTES_SHAPE: Shape = {
  kind: 'record',
  members: new Map(Object.entries(ROUTES).map(([name, of]) => [name, mapOf(of)])),
};

/** `resources`: each watched resource with its look-ups. */
export const resourcesShape = (names: Iterable<string>): Shape =>
  withMembers(names, withMembers(['get', 'fetch', 'list']));

/** `loop` inside a loop. */
export const LOOP_SHAPE = withMembers(
  ['index', 'index0', 'revindex', 'revindex0', 'first', 'last', 'length'],
  SCALAR,
);

/** Filters that give the elements of the list they are given, perhaps fewer or in another order. */
const SAME_ELEMENTS = new Set(['sort', 'sort_by', 'reverse', 'unique', 'where', 'reject']);

/** What an expression can have. */
export const shapeOf = (node: Node | undefined, shapes: Shapes): Shape => {
  switch (node?.typename) {
    case 'Symbol':
      return shapes.get(node.value) ?? ANY;
    case 'Literal':
      return typeof node.value === 'object' ? ANY : SCALAR;
    case 'Group':
      return shapeOf(node.children[0], shapes);
    case 'LookupVal':
      return memberShape(shapeOf(node.target, shapes), node.val);
    case 'FunCall':
      return callShape(node, shapes);
    case 'Filter':
      return filterShape(node, shapes);
    default:
      return ANY;
  }
};

const memberShape = (target: Shape, member: Node): Shape => {
  if (target.kind === 'map') return target.of;
  if (member.typename !== 'Literal') return target.kind === 'list' ? target.of : ANY;
  if (target.kind === 'list') return typeof member.value === 'number' ? target.of : SCALAR;
  return target.kind === 'record' ? (target.members.get(String(member.value)) ?? ANY) : ANY;
};

/** The look-ups of `resources` find objects of Kubernetes, which can have any member. */
const callShape = ({ name }: FunCall, shapes: Shapes): Shape => {
  const isList =
    name.typename === 'LookupVal' &&
    name.val.typename === 'Literal' &&
    ['list', 'fetch'].includes(String(name.val.value)) &&
    shapeOf(name.target, shapes).kind === 'record';
  return isList ? listOf(ANY) : ANY;
};

const filterShape = ({ name, args }: Filter, shapes: Shapes): Shape => {
  const input = shapeOf(args.children[0], shapes);
  if (SAME_ELEMENTS.has(name.value)) return listOf(elementShape(input));
  if (name.value === 'first' || name.value === 'last') return elementShape(input);
  return name.value === 'values' && input.kind === 'map' ? listOf(input.of) : ANY;
};

/** What a loop with one name, or the cells over a value, see of it. */
export const elementShape = (shape: Shape): Shape =>
  shape.kind === 'list' || shape.kind === 'map' ? shape.of : ANY;

/** What the names of a loop over a value can have: a mapping gives keys and values, a list with several is taken apart. */
export const loopShapes = (
  names: readonly string[],
  over: Shape,
): readonly (readonly [string, Shape])[] =>
  names.map((name, position) => {
    if (names.length === 1) return [name, elementShape(over)];
    if (over.kind !== 'map') return [name, ANY];
    return [name, position === 0 ? SCALAR : over.of];
  });

/**
 * Why a look-up can never find anything; undefined when it can.
 *
 * @param known what names can have, and the paths that the template asks for before it uses them
 */
export const impossibleMember = (
  node: LookupVal,
  { visible, guarded }: { readonly visible: Shapes; readonly guarded: ReadonlySet<string> },
): string | undefined => {
  const { target, val } = node;
  if (val.typename !== 'Literal' || guarded.has(describe(node))) return undefined;
  const shape = shapeOf(target, visible);
  const name = String(val.value);
  const names = namesIn(shape);
  if (names === undefined || names.includes(name)) return undefined;
  if (shape.kind === 'list' && typeof val.value === 'number') return undefined;
  return `${describe(target)} has no member "${name}"${nearest(name, names)}`;
};

/** Names of all members; undefined when there can be others. */
const namesIn = (shape: Shape): readonly string[] | undefined => {
  switch (shape.kind) {
    case 'record':
      return [...shape.members.keys()];
    case 'list':
      return ['length'];
    case 'scalar':
      return [];
    default:
      return undefined;
  }
};
