const wordIndex = { requested: 0, stopAt: 1, begun: 2 } as const;
const never = -1;

/**
 * Agreement of all ranks on the step after which they stop, in words that the threads of one process share. After a
 * stop is requested, no rank begins another step; the greatest step that any rank of any process has begun becomes the
 * last step.
 *
 * A rank announces the step that it begins before it checks for a requested stop, and the main thread requests a stop
 * before it reads which step was begun. So at least one of them sees the other, in any order.
 */
export class StopSignal {
  readonly words: Int32Array;

  constructor(buffer: SharedArrayBuffer) {
    this.words = new Int32Array(buffer);
  }

  /** @param firstStep number of steps done before the run. */
  static create(firstStep: number): StopSignal {
    const signal = new StopSignal(new SharedArrayBuffer(12));
    Atomics.store(signal.words, wordIndex.stopAt, never);
    Atomics.store(signal.words, wordIndex.begun, firstStep);
    return signal;
  }

  /** Main thread: let no rank of this process begin another step. @returns the greatest step that a rank has begun. */
  request(): number {
    Atomics.store(this.words, wordIndex.requested, 1);
    return Atomics.load(this.words, wordIndex.begun);
  }

  /**
   * Main thread: set the step after which all ranks stop; ranks that wait to begin a step continue up to that step. The
   * first decision is final, because ranks may already have acted on it.
   */
  decide(step: number): void {
    Atomics.compareExchange(this.words, wordIndex.stopAt, never, step);
    Atomics.notify(this.words, wordIndex.stopAt);
  }

  /**
   * Any rank, before a step: waits while a requested stop is not decided.
   *
   * @returns whether the step may begin. If not, the previous step was the last.
   */
  begin(step: number): boolean {
    const allowed = this.announce(step);
    if (allowed !== undefined) return allowed;
    Atomics.wait(this.words, wordIndex.stopAt, never);
    return step <= Atomics.load(this.words, wordIndex.stopAt);
  }

  /** Result of `begin` if no wait is needed. Absent: a stop is requested and not decided. */
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

  /** Any rank, after each step: whether `stepsDone` is the last step. */
  stopsAfter(stepsDone: number): boolean {
    return Atomics.load(this.words, wordIndex.stopAt) === stepsDone;
  }
}
