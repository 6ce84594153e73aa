import type { ApplyOutcome } from '../../src/protocol/answers.ts';
import type { ApplyCall } from './apply-call.ts';
import { ApplyRun } from './apply-run.ts';
import { BadRequest, ClientGone, Conflict, Rejection, messageOf } from '../failures.ts';
import type { CheckedManifest } from '../http/manifest.ts';
import type { Pacer } from '../haproxy/pacer.ts';
import { persist, type Pod } from '../pod.ts';

/** One apply after the other: see docs/protocol.md, "Order of an apply". */
export class Applier {
  readonly #pod: Pod;
  readonly #pacer: Pacer;

  constructor(pod: Pod, pacer: Pacer) {
    this.#pod = pod;
    this.#pacer = pacer;
  }

  /**
   * Applies, answers, and only then writes down what it did; the next apply waits for that.
   *
   * @throws BadRequest, Conflict, ClientGone
   */
  apply(call: ApplyCall): Promise<ApplyOutcome> {
    return new Promise((resolve, reject) => {
      void this.#pod.lock.run(async () => {
        await this.#guarded(call).then(resolve, reject);
        await this.#write();
      });
    });
  }

  async #guarded(call: ApplyCall): Promise<ApplyOutcome> {
    const run = new ApplyRun(this.#pod, this.#pacer, call);
    const { metrics, log } = this.#pod;
    try {
      const outcome = await run.execute();
      metrics.count('haptic_agent_applies_total', outcome.outcome);
      log.info('applied', logFields(call.manifest, outcome));
      return outcome;
    } catch (thrown: unknown) {
      const error = isAnswer(thrown)
        ? thrown
        : new Rejection('write', messageOf(thrown), { cause: thrown });
      if (error instanceof Rejection) {
        metrics.count('haptic_agent_applies_total', 'rejected');
        log.warn('apply rejected', { planId: call.manifest.planId, stage: error.stage });
        return run.rejected(error);
      }
      const label = error instanceof Conflict ? 'conflict' : 'bad-request';
      metrics.count('haptic_agent_applies_total', label);
      log.info('apply not accepted', { planId: call.manifest.planId, reason: messageOf(error) });
      throw error;
    }
  }

  async #write(): Promise<void> {
    try {
      await persist(this.#pod);
    } catch (error: unknown) {
      // What is on disk still says less than is true, and never more: the journal is there.
      this.#pod.log.error('cannot write down what was applied', { error: messageOf(error) });
    }
  }
}

const isAnswer = (error: unknown): error is Error =>
  [Rejection, BadRequest, Conflict, ClientGone].some((kind) => error instanceof kind);

const logFields = (
  manifest: CheckedManifest,
  outcome: ApplyOutcome,
): Readonly<Record<string, string | number | readonly string[]>> => ({
  planId: manifest.planId,
  outcome: outcome.outcome,
  operations: outcome.operationsRun,
  failed: outcome.failedOperations.map(
    ({ kind, target, message }) => `${kind} ${target}: ${message ?? ''}`,
  ),
  ms: Math.round(outcome.timings.total),
});
