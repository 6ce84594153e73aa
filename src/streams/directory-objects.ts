import { hash } from 'node:crypto';
import type { KubeObject } from '../snapshot/objects.ts';
import { groupOf, isClusterScoped } from './directory-kinds.ts';

/** A document of a manifest as an API server would store it, or why it would not. */
export type StoredObject =
  | { readonly ok: true; readonly identity: string; readonly object: KubeObject }
  | {
      readonly ok: false;
      /** Known when it is clear which object is meant. */
      readonly identity: string | undefined;
      readonly field: string;
      readonly message: string;
    };

type Members = Readonly<Record<string, unknown>>;

/** An object's identity whatever its version: group, kind, namespace, name. None of them holds a space. */
export const identityOf = (object: KubeObject): string =>
  [
    groupOf(object.apiVersion),
    object.kind,
    object.metadata.namespace ?? '',
    object.metadata.name,
  ].join(' ');

/** The documents of a list kind, or the document itself; with the path of each inside the document. */
export const listItems = (
  document: unknown,
): readonly { readonly value: unknown; readonly path: string }[] => {
  if (!isMembers(document)) return [{ value: document, path: '' }];
  const { kind, items, apiVersion } = document;
  if (typeof kind !== 'string' || !kind.endsWith('List') || !Array.isArray(items)) {
    return [{ value: document, path: '' }];
  }
  const inherited = kind === 'List' ? {} : { apiVersion, kind: kind.slice(0, -'List'.length) };
  return items.flatMap((item: unknown, index) =>
    listItems(isMembers(item) ? { ...inherited, ...item } : item).map(({ value, path }) => ({
      value,
      path: `items[${index}]${path === '' ? '' : `.${path}`}`,
    })),
  );
};

/**
 * Checks and completes what a manifest says, as an API server does on entry: namespace `default` where the kind has one,
 * `stringData` of Secrets moved to `data`. What only a server can know gets stand-ins that depend on the content alone:
 * uid from the identity, creationTimestamp at the epoch. The resourceVersion always comes from the content, because a
 * manifest that was exported from a cluster carries one that does not move when the file is edited.
 */
export const storedObject = (value: unknown): StoredObject => {
  if (!isMembers(value)) return refused('', 'a manifest is a mapping with apiVersion and kind');
  const type = checkType(value);
  if (type !== undefined) return type;
  const { metadata } = value;
  if (!isMembers(metadata)) return refused('metadata', 'is missing');
  const named = checkNames(metadata);
  if (named !== undefined) return named;
  const object = complete(value as KubeObject);
  const identity = identityOf(object);
  const wrong = checkMetadata(metadata);
  return wrong === undefined ? { ok: true, identity, object } : { ...wrong, identity };
};

const API_VERSION = /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\/)?[a-z][a-z0-9]{0,62}$/;
const KIND = /^[A-Z][A-Za-z0-9]{0,62}$/;
const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._:-]{0,251}[A-Za-z0-9])?$/;
const NAMESPACE = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const EPOCH = '1970-01-01T00:00:00Z';

type Refused = Extract<StoredObject, { ok: false }>;

const refused = (field: string, message: string): Refused => ({
  ok: false,
  identity: undefined,
  field,
  message,
});

const checkType = ({ apiVersion, kind }: Members): Refused | undefined => {
  if (typeof apiVersion !== 'string') return refused('apiVersion', missing(apiVersion));
  if (!API_VERSION.test(apiVersion)) return refused('apiVersion', 'is not like group/version');
  if (typeof kind !== 'string') return refused('kind', missing(kind));
  return KIND.test(kind) ? undefined : refused('kind', 'is not a word in CamelCase');
};

const checkNames = ({ name, namespace }: Members): Refused | undefined => {
  if (typeof name !== 'string') return refused('metadata.name', missing(name));
  if (!NAME.test(name)) {
    return refused(
      'metadata.name',
      'may have 253 letters, digits, "-" and ".", and begins and ends with a letter or digit',
    );
  }
  if (namespace === undefined || namespace === null) return undefined;
  if (typeof namespace === 'string' && NAMESPACE.test(namespace)) return undefined;
  return refused(
    'metadata.namespace',
    'may have 63 lower-case letters, digits and "-", and begins and ends with a letter or digit',
  );
};

const checkMetadata = (metadata: Members): Refused | undefined => {
  for (const field of ['labels', 'annotations']) {
    const texts = metadata[field];
    if (texts === undefined || texts === null) continue;
    if (!isMembers(texts)) return refused(`metadata.${field}`, 'must be a mapping of texts');
    const odd = Object.keys(texts).find((name) => typeof texts[name] !== 'string');
    if (odd !== undefined) {
      return refused(`metadata.${field}`, `holds ${JSON.stringify(odd)}, ${NOT_TEXT}`);
    }
  }
  const odd = ['uid', 'creationTimestamp'].find(
    (field) => !['string', 'undefined'].includes(typeof (metadata[field] ?? undefined)),
  );
  return odd === undefined ? undefined : refused(`metadata.${odd}`, 'must be a text');
};

const NOT_TEXT = 'which is not a text (put quotes around the value)';

const missing = (value: unknown): string =>
  value === undefined || value === null ? 'is missing' : 'is not a text (put quotes around it)';

const complete = (given: KubeObject): KubeObject => {
  const object = isSecret(given) ? withStringData(given) : given;
  const { apiVersion, kind } = object;
  const metadata = Object.fromEntries(
    Object.entries(object.metadata).filter(([, value]) => value !== null),
  ) as Mutable<KubeObject['metadata']>;
  if (isClusterScoped(apiVersion, kind)) delete metadata.namespace;
  else metadata.namespace ??= 'default';
  metadata.uid ??= uuidOf(identityOf({ apiVersion, kind, metadata }));
  metadata.creationTimestamp ??= EPOCH;
  metadata.resourceVersion = hash('sha256', JSON.stringify(given)).slice(0, 32);
  return { ...object, metadata };
};

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** A text as a UUID of version 8, the version for anybody's own scheme. */
const uuidOf = (text: string): string => {
  const hex = hash('sha256', text);
  const part = (from: number, to: number): string => hex.slice(from, to);
  return `${part(0, 8)}-${part(8, 12)}-8${part(13, 16)}-8${part(17, 20)}-${part(20, 32)}`;
};

const isSecret = ({ apiVersion, kind }: KubeObject): boolean =>
  apiVersion === 'v1' && kind === 'Secret';

const withStringData = (secret: KubeObject): KubeObject => {
  const { stringData, data, ...rest } = secret;
  if (!isMembers(stringData)) return secret;
  const encoded = Object.entries(stringData).map(([name, text]) => [
    name,
    typeof text === 'string' ? Buffer.from(text).toString('base64') : text,
  ]);
  return {
    ...rest,
    data: { ...(isMembers(data) ? data : {}), ...Object.fromEntries(encoded) },
  };
};

const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
