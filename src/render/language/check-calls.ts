/** What is wrong with a call of a function because of where it stands, or because of literals that it is given. */
import { nameOfKey } from './compile-context.ts';
import { nearest } from './failure.ts';
import { BACKEND_MEMBERS, PROFILE_MEMBERS, SERVER_MEMBERS } from './declare-backend.ts';
import type { FunCall, Node } from './syntax.ts';

/** Where a call stands. */
export interface CallPlace {
  readonly cells: string | undefined;
  readonly inSection: boolean;
  readonly isMain: boolean;
}

/** What can follow as type of a path. */
const PATH_TYPES = ['map', 'cert', 'crt-list', 'file'];

/**
 * A problem and the node it lies in, for each mistake.
 *
 * @param maps names of the maps of the configuration
 */
export const callProblems = (
  node: FunCall,
  place: CallPlace,
  maps: readonly string[],
): readonly (readonly [Node, string])[] => {
  const name = node.name.typename === 'Symbol' ? node.name.value : '';
  const misplaced = name === 'backend' ? backendProblem(place) : profileProblem(name, place);
  const known = { backend: BACKEND_MEMBERS, profile: PROFILE_MEMBERS, server: SERVER_MEMBERS }[
    name
  ];
  return [
    ...(misplaced === undefined ? [] : [[node, misplaced] as const]),
    ...(known === undefined ? [] : unknownMembers(node, name, known)),
    ...literalProblems(node, name, maps),
  ];
};

const backendProblem = ({ cells, isMain, inSection }: CallPlace): string | undefined => {
  if (cells === undefined) return 'backend() can only be called by cells';
  return !isMain || inSection
    ? 'cells that declare backends can only stand at the top level of the main template'
    : undefined;
};

const profileProblem = (
  name: string,
  { cells, isMain, inSection }: CallPlace,
): string | undefined =>
  name === 'profile' && (!isMain || cells !== undefined || inSection)
    ? 'profile() can only be printed at the top level of the main template'
    : undefined;

const unknownMembers = (
  { args }: FunCall,
  name: string,
  known: readonly string[],
): readonly (readonly [Node, string])[] => {
  const [members] = args.children;
  if (members?.typename !== 'Dict') return [];
  return members.children
    .filter(({ key }) => !known.includes(nameOfKey(key)))
    .map(({ key }) => {
      const member = nameOfKey(key);
      return [key, `${name}() has no member "${member}"${nearest(member, known)}`] as const;
    });
};

const literalProblems = (
  { args }: FunCall,
  name: string,
  maps: readonly string[],
): readonly (readonly [Node, string])[] => {
  const [first, type, third] = args.children;
  if (name === 'map_entry') return unknownMap(third, maps);
  if (name !== 'path') return [];
  const kind = textOf(type);
  if (kind === 'map') return unknownMap(first, maps);
  if (type === undefined || kind === undefined || PATH_TYPES.includes(kind)) return [];
  return [[type, `there are no paths of type "${kind}"${nearest(kind, PATH_TYPES)}`]];
};

const unknownMap = (
  node: Node | undefined,
  maps: readonly string[],
): readonly (readonly [Node, string])[] => {
  const name = textOf(node);
  if (node === undefined || name === undefined || maps.includes(name)) return [];
  return [[node, `there is no map "${name}"${nearest(name, maps)}`]];
};

const textOf = (node: Node | undefined): string | undefined =>
  node?.typename === 'Literal' && typeof node.value === 'string' ? node.value : undefined;
