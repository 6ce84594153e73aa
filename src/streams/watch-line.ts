import type { ApiResource } from '../kube/api-resource.ts';
import { KubeError } from '../kube/client.ts';
import { refusalError } from '../kube/kube-error.ts';
import type { KubeObject } from '../snapshot/objects.ts';

/** One line of a watch: a change, or a bookmark, which has no object. */
export interface WatchLine {
  /** The resourceVersion that a watch can go on from after this line. */
  readonly version: string;
  readonly change?: { readonly deleted: boolean; readonly object: KubeObject };
}

/** One page of a list. */
export interface ListPage {
  readonly version: string;
  /** Token of the next page; empty when this is the last one. */
  readonly next: string;
  readonly objects: readonly KubeObject[];
}

/**
 * Reads one line of a watch. Throws the {@link KubeError} that an ERROR event means, and `protocol` for anything the
 * protocol does not know.
 *
 * @param request verb and path, for messages
 */
export const readWatchLine = (line: unknown, api: ApiResource, request: string): WatchLine => {
  const { type, object } = membersOf(line);
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED': {
      const change = { deleted: type === 'DELETED', object: readObject(object, api, request) };
      return { version: versionOf(object, request), change };
    }
    case 'BOOKMARK':
      return { version: versionOf(object, request) };
    case 'ERROR':
      throw refusalError({ request, answer: object });
    default:
      throw protocolError(request, 'an event has no type that is known');
  }
};

/** Reads one page of a list. Throws {@link KubeError} `protocol` when it is none. */
export const readListPage = (answer: unknown, api: ApiResource, request: string): ListPage => {
  const { items, metadata } = membersOf(answer);
  const next = membersOf(metadata)['continue'] ?? '';
  // A list without a single object has `items: null` in some versions.
  const list = items ?? [];
  if (!Array.isArray(list) || typeof next !== 'string') {
    throw protocolError(request, 'the answer is not a list');
  }
  return {
    version: versionOf(answer, request),
    next,
    objects: list.map((item) => readObject(item, api, request)),
  };
};

/** One object. Items of a list do not say their kind, and metadata says another one; the resource knows it. Throws {@link KubeError}. */
export const readObject = (
  item: unknown,
  { apiVersion, kind }: ApiResource,
  request: string,
): KubeObject => {
  const { metadata } = membersOf(item);
  const { name, namespace } = membersOf(metadata);
  const named = typeof name === 'string' && name !== '';
  if (!named || !(namespace === undefined || typeof namespace === 'string')) {
    throw protocolError(request, 'an object has no name');
  }
  return { ...(item as KubeObject), apiVersion, kind };
};

const versionOf = (object: unknown, request: string): string => {
  const version = membersOf(membersOf(object)['metadata'])['resourceVersion'];
  if (typeof version === 'string' && version !== '') return version;
  throw protocolError(request, 'a resourceVersion is missing');
};

const protocolError = (request: string, reason: string): KubeError =>
  new KubeError('protocol', `${request}: ${reason}`);

const membersOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
