import { sha256 } from '../digest.ts';
import type { Digest } from '../protocol/protocol.ts';
import type { ObjectRef } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import { CONFIGURATION } from './published-files.ts';
import type { ObjectWrite, WrittenResource } from './write-objects.ts';

/** Something to be said about an object. */
export interface EventDraft {
  readonly regarding: ObjectRef;
  readonly type: 'Normal' | 'Warning';
  /** Stable word, for example `ServiceNotFound`. */
  readonly reason: string;
  /** What was being done: `Render`, `Check`, `Reload`, `Load`. */
  readonly action: string;
  /** For people; at most {@link NOTE_BYTES}. */
  readonly note: string;
  /** Digest of who, why and what: equal drafts say the same. */
  readonly id: Digest;
}

/** What a note may have in bytes. */
export const NOTE_BYTES = 1_024;
const WORD_LENGTH = 128;

/** The draft of an event; texts are cut to what the API takes and hold neither control characters nor PEM blocks. */
export const eventDraft = (parts: Omit<EventDraft, 'id'>): EventDraft => {
  const note = cutBytes(plain(parts.note), NOTE_BYTES);
  const reason = parts.reason.slice(0, WORD_LENGTH) || 'Unknown';
  const { apiVersion, kind, namespace, name, uid } = parts.regarding;
  const id = sha256(JSON.stringify([apiVersion, kind, namespace, name, uid, reason, note]));
  return { ...parts, reason, note, id };
};

/** The event that a problem with an object is told by. */
export const problemDraft = (
  problem: Problem,
  regarding: ObjectRef,
  action: string,
): EventDraft => {
  const { field, message, nextStep, reason } = problem;
  const note = `${field === undefined ? '' : `${field}: `}${message} ${nextStep}`.trim();
  return eventDraft({ regarding, type: 'Warning', reason, action, note });
};

/** Events are written anew each hour, since that is how long the API server keeps them. */
const HOUR_MS = 3_600_000;

/**
 * The hour an event falls into. Each draft has hours of its own, so that a thousand that are due again are not due at
 * once; every replica finds the same.
 */
export const hourOf = ({ id }: EventDraft, nowMs: number): number =>
  Math.floor((nowMs + (parseInt(id.slice(0, 8), 16) % HOUR_MS)) / HOUR_MS);

/** Who writes an event, and when. */
interface EventSource {
  readonly nowMs: number;
  /** Name of the replica. */
  readonly instance: string;
  /** For events about the configuration that do not know it. */
  readonly configUid: string;
}

const EVENT: WrittenResource = { apiVersion: 'events.k8s.io/v1', kind: 'Event', plural: 'events' };
const CONTROLLER = 'haproxy-haptic.org/controller';

/**
 * The event of a draft. Its name says whom, what and in which hour, so whoever creates it a second time meets a conflict
 * and has nothing left to do. Events about cluster-scoped objects lie in namespace `default`, as the API wants it.
 */
export const eventWrite = (
  draft: EventDraft,
  { nowMs, instance, configUid }: EventSource,
): ObjectWrite => {
  const { regarding, type, reason, action, note, id } = draft;
  const isConfig = regarding.kind === CONFIGURATION.kind && regarding.uid === '';
  const uid = isConfig ? configUid : regarding.uid;
  const suffix = sha256(`${id} ${String(hourOf(draft, nowMs))}`);
  return {
    verb: 'create',
    resource: EVENT,
    namespace: regarding.namespace === '' ? 'default' : regarding.namespace,
    name: `${slug(regarding.name)}.${suffix}`,
    body: {
      eventTime: new Date(nowMs).toISOString().replace('Z', '000Z'),
      reportingController: CONTROLLER,
      reportingInstance: instance.slice(0, WORD_LENGTH),
      action,
      reason,
      regarding: {
        apiVersion: regarding.apiVersion,
        kind: regarding.kind,
        name: regarding.name,
        ...(regarding.namespace === '' ? {} : { namespace: regarding.namespace }),
        ...(uid === '' ? {} : { uid }),
      },
      note,
      type,
    },
  };
};

const slug = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 100)
    .replace(/-+$/, '') || 'object';

/** One line, without what may come from a key or certificate that a message quotes. */
const plain = (text: string): string =>
  text
    .replace(/-----BEGIN [\s\S]*?(?:-----END [^-]*-----|$)/g, '(PEM left out)')
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim();

/** The longest beginning that has at most so many bytes in UTF-8 and ends with a whole character. */
const cutBytes = (text: string, bytes: number): string => {
  const encoded = new TextEncoder().encode(text);
  if (encoded.length <= bytes) return text;
  const ellipsis = '…';
  let end = bytes - new TextEncoder().encode(ellipsis).length;
  while (((encoded[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return `${new TextDecoder().decode(encoded.subarray(0, end))}${ellipsis}`;
};
