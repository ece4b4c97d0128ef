const wordIndex = { requested: 0, stopAt: 1, begun: 2 } as const;
const never = -1;

/**
 * Agreement of all ranks on the step after which they stop, in memory shared by the threads of one process. After a
 * stop is requested, no rank begins another step. The last step is the largest step number that any rank of any process
 * has begun.
 *
 * A rank announces a step before it checks for a stop request, and the main thread requests a stop before it reads the
 * announced steps. So in any order, the rank sees the request, or the main thread sees the step.
 */
export class StopSignal {
  readonly words: Int32Array;

  constructor(buffer: SharedArrayBuffer) {
    this.words = new Int32Array(buffer);
  }

  /**
   * Creates a signal in new shared memory.
   * @param firstStep Number of steps completed before the run.
   */
  static create(firstStep: number): StopSignal {
    const signal = new StopSignal(new SharedArrayBuffer(12));
    Atomics.store(signal.words, wordIndex.stopAt, never);
    Atomics.store(signal.words, wordIndex.begun, firstStep);
    return signal;
  }

  /**
   * Main thread: prevents ranks of this process from beginning another step.
   *
   * @returns the largest step number that a rank has begun.
   */
  request(): number {
    Atomics.store(this.words, wordIndex.requested, 1);
    return Atomics.load(this.words, wordIndex.begun);
  }

  /**
   * Main thread: sets the step after which all ranks stop. Ranks that wait before a step continue up to this step. Only
   * the first call has an effect, because ranks may already have stopped.
   */
  decide(step: number): void {
    Atomics.compareExchange(this.words, wordIndex.stopAt, never, step);
    Atomics.notify(this.words, wordIndex.stopAt);
  }

  /**
   * Any rank, before a step: waits while a stop is requested and the last step is not decided.
   *
   * @returns whether the step may begin. If false, the previous step was the last step.
   */
  begin(step: number): boolean {
    const allowed = this.announce(step);
    if (allowed !== undefined) return allowed;
    Atomics.wait(this.words, wordIndex.stopAt, never);
    return step <= Atomics.load(this.words, wordIndex.stopAt);
  }

  /**
   * Announces a step, and returns the result of `begin` if no wait is needed. Undefined: a stop is requested, and the
   * last step is not decided yet.
   */
  announce(step: number): boolean | undefined {
    for (let current = Atomics.load(this.words, wordIndex.begun); current < step; ) {
      const found = Atomics.compareExchange(this.words, wordIndex.begun, current, step);
      if (found === current) break;
      current = found;
    }
    if (Atomics.load(this.words, wordIndex.requested) === 0) return true;
    const stopAt = Atomics.load(this.words, wordIndex.stopAt);
    return stopAt === never ? undefined : step <= stopAt;
  }

  /** Any rank, after each step: returns whether `stepsDone` is the last step. */
  stopsAfter(stepsDone: number): boolean {
    return Atomics.load(this.words, wordIndex.stopAt) === stepsDone;
  }
}
