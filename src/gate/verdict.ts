import type { Plan } from '../plan/plan.ts';
import type { Digest } from '../protocol/protocol.ts';
import type { Render } from '../render/render.ts';
import type { Problem } from '../snapshot/problem.ts';

/** What the checker needs of a render. */
export interface Checkable extends Pick<Render, 'files' | 'provenance'> {
  readonly plan: Pick<Plan, 'id' | 'config'>;
}

/** What HAProxy's checker said about one render (docs/gate.md). */
export type Verdict =
  | { readonly result: 'passed' }
  | {
      readonly result: 'refused';
      /** HAProxy's alerts, and where they come from (template, object) as far as provenance knows. */
      readonly message: string;
      readonly problems: readonly Problem[];
    }
  | {
      /** Could not run, timed out, out of memory, killed: no judgement of the configuration. */
      readonly result: 'inconclusive';
      readonly cause: string;
    };

export interface Checked {
  readonly planId: Digest;
  readonly verdict: Verdict;
  readonly durationMs: number;
}

export type GatePhase = 'open' | 'holding' | 'pinned';
