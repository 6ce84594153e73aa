import type { Checked } from '../gate/verdict.ts';
import type { Notification, Pod } from '../ports.ts';
import type { ObjectRef } from '../snapshot/objects.ts';
import type { Problem } from '../snapshot/problem.ts';
import { eventDraft, type EventDraft, problemDraft } from './event-draft.ts';
import { CONFIGURATION } from './published-files.ts';

/** Problems of one list that events are written for; who has more reads the log. */
const MAX_PROBLEMS = 1_000;

/** Which events follow from problems and notifications. Of a thousand problems most were in the list before. */
export class Drafts {
  readonly #config: ObjectRef;
  readonly #known = new WeakMap<Problem, EventDraft>();
  /** The newest verdict was a refusal. */
  #refused = false;

  constructor(config: { readonly namespace: string; readonly name: string }) {
    const { apiVersion, kind } = CONFIGURATION;
    this.#config = { apiVersion, kind, ...config, uid: '' };
  }

  /** What is wrong now. A problem without an object is told about the configuration. */
  problems(problems: readonly Problem[], action: string): readonly EventDraft[] {
    return problems.slice(0, MAX_PROBLEMS).map((problem) => this.#problem(problem, action));
  }

  /** What has happened. */
  happened(event: Notification): readonly EventDraft[] {
    switch (event.type) {
      case 'Checked':
        return this.#checked(event.checked);
      case 'ReloadDone':
        return event.ok
          ? []
          : podDrafts(event.pod, { reason: 'ReloadFailed', action: 'Reload', note: event.message });
      case 'ApplyFailed':
        return event.cause === 'rejected'
          ? podDrafts(event.pod, { reason: 'ApplyRejected', action: 'Apply', note: event.message })
          : [];
      default:
        return [];
    }
  }

  #checked({ verdict }: Checked): readonly EventDraft[] {
    if (verdict.result === 'inconclusive') return [];
    const wasRefused = this.#refused;
    this.#refused = verdict.result === 'refused';
    if (verdict.result === 'refused') {
      if (verdict.problems.length > 0) return this.problems(verdict.problems, 'Check');
      const note = `HAProxy refuses the newest configuration, so the fleet keeps the accepted one: ${verdict.message}`;
      return [this.#aboutConfig('Warning', 'ConfigRefused', note)];
    }
    const note = 'HAProxy accepts the newest configuration again.';
    return wasRefused ? [this.#aboutConfig('Normal', 'ConfigAccepted', note)] : [];
  }

  #aboutConfig(type: EventDraft['type'], reason: string, note: string): EventDraft {
    return eventDraft({ regarding: this.#config, type, reason, action: 'Check', note });
  }

  #problem(problem: Problem, action: string): EventDraft {
    const known = this.#known.get(problem);
    if (known !== undefined) return known;
    const draft = problemDraft(problem, problem.object ?? this.#config, action);
    this.#known.set(problem, draft);
    return draft;
  }
}

const podDrafts = (
  { key }: Pod,
  what: Pick<EventDraft, 'reason' | 'action' | 'note'>,
): readonly EventDraft[] => {
  const [namespace, name, uid] = key.split('/');
  if (namespace === undefined || name === undefined || uid === undefined) return [];
  const regarding = { apiVersion: 'v1', kind: 'Pod', namespace, name, uid };
  return [eventDraft({ regarding, type: 'Warning', ...what })];
};
