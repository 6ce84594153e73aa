import type { Report } from './complaint.ts';
import { shown } from './complaint.ts';
import { at } from './fields.ts';

/** A path of a rule, ready to be compared with requests. */
export interface ReadPath {
  readonly type: 'exact' | 'prefix';
  /** Prefixes stand without trailing slash, the root as ``. */
  readonly path: string;
}

/** So that a host, a path and a slash are still one key of a map. */
const MAX_LENGTH = 1024;

/**
 * What a request line can carry as a path (RFC 3986) less quotes and the semicolon, which separates commands on
 * HAProxy's command line.
 */
const PATH = /^(?:\/|\/(?:[A-Za-z0-9\-._~!$&()*+,=:@/]|%[0-9A-Fa-f]{2})+)$/;

/** Segments that clients and servers resolve in different ways, as the API server refuses them too. */
const AMBIGUOUS = /\/\/|\/\.\.?(?:\/|$)|%2f/i;

/** Signs of a regular expression, which implementation-specific paths of other controllers may be. */
const PATTERN = /[*()$]/;

type PathType = 'Exact' | 'Prefix' | 'ImplementationSpecific';

const isPathType = (type: unknown): type is PathType =>
  type === 'Exact' || type === 'Prefix' || type === 'ImplementationSpecific';

const faultOf = (path: string, type: PathType): string | undefined => {
  if (!path.startsWith('/')) return 'does not begin with "/"';
  if (path.length > MAX_LENGTH) return `is longer than ${MAX_LENGTH} characters`;
  if (type === 'ImplementationSpecific' && PATTERN.test(path)) return 'looks like a pattern';
  if (!PATH.test(path)) return 'has characters that the path of a request cannot have';
  return AMBIGUOUS.test(path) ? 'has "//", "/./", "/../" or "%2f" in it' : undefined;
};

/**
 * Path and path type of one entry of `spec.rules[].http.paths`. ImplementationSpecific means Prefix here.
 *
 * @param entry one entry of the list
 * @param field its place in the object
 * @returns undefined when no request can match it; then it was reported
 */
export const readPath = (entry: unknown, field: string, report: Report): ReadPath | undefined => {
  const type = at(entry, 'pathType');
  if (!isPathType(type)) {
    report({
      reason: 'InvalidPathType',
      field: `${field}.pathType`,
      message: `The path type is ${type === undefined ? 'not set' : shown(type)}; this path is left out.`,
      nextStep: 'Set pathType to Exact, Prefix or ImplementationSpecific.',
    });
    return undefined;
  }
  const given = at(entry, 'path') ?? (type === 'Exact' ? '' : '/');
  const path = typeof given === 'string' ? given : '';
  const fault = faultOf(path, type);
  if (fault !== undefined) {
    report({
      reason: 'InvalidPath',
      field: `${field}.path`,
      message: `The path ${shown(given)} ${fault}; this path is left out.`,
      nextStep: 'Write the path as it stands in a request, for example /shop, percent-encoded.',
    });
    return undefined;
  }
  return type === 'Exact'
    ? { type: 'exact', path }
    : { type: 'prefix', path: path.replace(/\/$/, '') };
};
