import { isIP, isIPv6 } from 'node:net';
import type { Pod } from '../ports.ts';
import type { KubeObject } from '../snapshot/objects.ts';

/** Name of the container that runs HAProxy in a pod of the fleet. */
const CONTAINER = 'haproxy';
const MOST_LETTERS = 80;

/** A pod of the fleet, or why it is none (for people). */
export type PodReading =
  | {
      readonly pod: Pod;
      /** It is being deleted, and its HAProxy still drains. */
      readonly isLeaving: boolean;
      /** RFC 3339; empty when the pod does not say. */
      readonly createdAt: string;
    }
  | { readonly reason: string };

/**
 * What a Pod object is to the fleet. Only its haproxy container counts: it makes another pod of it with each start, and keeps
 * it in the fleet until it has ended for good. One that crashes stays, since what mends it may be an apply.
 */
export const readPod = (object: KubeObject, port: number): PodReading => {
  const { metadata } = object;
  const { name, namespace = '', uid = '', creationTimestamp } = metadata;
  const status = object['status'];
  const isLeaving = text(member(metadata, 'deletionTimestamp')) !== undefined;
  const container = named(member(status, 'containerStatuses'));
  const start = startOf(container);
  const host = hostOf(status);
  const over = whyOver(object, { container, isLeaving });
  if (over !== undefined) return { reason: over };
  if (start === undefined) return { reason: whyNotStarted(object, container) };
  if (host === undefined) return { reason: 'it has no IP address' };
  const key = `${namespace}/${name}/${uid}/${start}`;
  const pod = { key, name, url: `https://${host}:${String(port)}` };
  return { pod, isLeaving, createdAt: text(creationTimestamp) ?? '' };
};

const whyOver = (
  object: KubeObject,
  { container, isLeaving }: { readonly container: unknown; readonly isLeaving: boolean },
): string | undefined => {
  const phase = text(member(object['status'], 'phase'));
  if (phase === 'Failed' || phase === 'Succeeded') return `its phase is ${phase}`;
  if (text(object.metadata.uid) === undefined) return 'it has no uid';
  return isLeaving && hasEnded(container) ? `its container ${CONTAINER} has ended` : undefined;
};

const whyNotStarted = (object: KubeObject, container: unknown): string => {
  const containers = member(object['spec'], 'containers');
  if (container === undefined && named(containers) === undefined) {
    return `it has no container ${CONTAINER}`;
  }
  const why = text(member(member(member(container, 'state'), 'waiting'), 'reason'));
  const because = why === undefined ? '' : `: ${why.slice(0, MOST_LETTERS)}`;
  return `its container ${CONTAINER} has not started${because}`;
};

const named = (containers: unknown): unknown =>
  Array.isArray(containers)
    ? containers.find((container) => member(container, 'name') === CONTAINER)
    : undefined;

const hasEnded = (container: unknown): boolean =>
  member(member(container, 'state'), 'terminated') !== undefined;

/** What is another text after each start of the container; undefined before the first. */
const startOf = (container: unknown): string | undefined => {
  const running = member(member(container, 'state'), 'running');
  const known = text(member(container, 'containerID')) ?? text(member(running, 'startedAt'));
  if (known !== undefined) return known;
  const restarts = member(container, 'restartCount');
  const hasStarted = running !== undefined || (typeof restarts === 'number' && restarts > 0);
  return hasStarted ? `restart-${String(Number(restarts) || 0)}` : undefined;
};

/** The address as a URL holds it; undefined for what is none. */
const hostOf = (status: unknown): string | undefined => {
  const address = text(member(status, 'podIP'));
  if (address === undefined || isIP(address) === 0 || address.includes('%')) return undefined;
  return isIPv6(address) ? `[${address}]` : address;
};

/** An own member, null as absent: an unset member comes either way. */
const member = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? ((value as Readonly<Record<string, unknown>>)[name] ?? undefined)
    : undefined;

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
