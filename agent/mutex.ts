/** First come, first served: everything that changes the pod goes through one of these. */
export class Mutex {
  #tail: Promise<unknown> = Promise.resolve();
  #jobs = 0;

  /** Whether something runs or waits now. */
  get busy(): boolean {
    return this.#jobs > 0;
  }

  /** Runs `work` after everything that was given before has settled. */
  run<T>(work: () => Promise<T>): Promise<T> {
    this.#jobs += 1;
    const result = this.#tail.then(work).finally(() => (this.#jobs -= 1));
    this.#tail = result.catch(() => undefined);
    return result;
  }

  /** Settles when nothing is running or waiting. */
  idle(): Promise<void> {
    return this.run(() => Promise.resolve());
  }
}
