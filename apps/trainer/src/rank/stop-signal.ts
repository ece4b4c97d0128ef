const word = { requested: 0, stopAt: 1, begun: 2 } as const;
const never = -1;

/**
 * Agreement of all ranks on the step after which they stop, in words that the threads of one process share. Once a stop
 * is requested no rank begins a further step; the greatest step that any rank of any process has begun becomes the last
 * one.
 *
 * A rank says which step it begins before it looks whether a stop is requested, and the main thread requests before it
 * looks which step was begun: so one of them sees the other, whichever comes first.
 */
export class StopSignal {
  readonly words: Int32Array;

  constructor(buffer: SharedArrayBuffer) {
    this.words = new Int32Array(buffer);
  }

  /** @param firstStep steps done before the run. */
  static create(firstStep: number): StopSignal {
    const signal = new StopSignal(new SharedArrayBuffer(12));
    Atomics.store(signal.words, word.stopAt, never);
    Atomics.store(signal.words, word.begun, firstStep);
    return signal;
  }

  /** Main thread: let no rank of this process begin another step. @returns the greatest step that one has begun. */
  request(): number {
    Atomics.store(this.words, word.requested, 1);
    return Atomics.load(this.words, word.begun);
  }

  /**
   * Main thread: the step after which all ranks stop; ranks that wait to begin a step go on up to it. The first
   * decision stands: ranks may have heeded it.
   */
  decide(step: number): void {
    Atomics.compareExchange(this.words, word.stopAt, never, step);
    Atomics.notify(this.words, word.stopAt);
  }

  /**
   * Any rank, before a step: waits while a requested stop is not decided.
   *
   * @returns whether the step may begin; else the one before was the last.
   */
  begin(step: number): boolean {
    const allowed = this.announce(step);
    if (allowed !== undefined) return allowed;
    Atomics.wait(this.words, word.stopAt, never);
    return step <= Atomics.load(this.words, word.stopAt);
  }

  /** What `begin` says where it does not have to wait; undefined where a stop is requested and not decided. */
  announce(step: number): boolean | undefined {
    for (let seen = Atomics.load(this.words, word.begun); seen < step; ) {
      const found = Atomics.compareExchange(this.words, word.begun, seen, step);
      if (found === seen) break;
      seen = found;
    }
    if (Atomics.load(this.words, word.requested) === 0) return true;
    const stopAt = Atomics.load(this.words, word.stopAt);
    return stopAt === never ? undefined : step <= stopAt;
  }

  /** Any rank, after each step. */
  stopsAfter(stepsDone: number): boolean {
    return Atomics.load(this.words, word.stopAt) === stepsDone;
  }
}
