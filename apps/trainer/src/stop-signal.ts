const word = { requested: 0, stopAt: 1 } as const;
const never = -1;

/**
 * Agreement of all ranks on the step after which they stop. The main thread asks; rank 0 answers before it begins a step,
 * and the others cannot finish that step without rank 0's part of its collectives, so all see the answer in time.
 */
export class StopSignal {
  readonly words: Int32Array;

  constructor(buffer: SharedArrayBuffer) {
    this.words = new Int32Array(buffer);
  }

  static create(): StopSignal {
    const signal = new StopSignal(new SharedArrayBuffer(8));
    Atomics.store(signal.words, word.stopAt, never);
    return signal;
  }

  /** Main thread: stop soon. */
  request(): void {
    Atomics.store(this.words, word.requested, 1);
  }

  /** Rank 0, before it begins the step that makes `stepsDone` + 1. */
  answer(stepsDone: number): void {
    if (Atomics.load(this.words, word.requested) === 1) Atomics.compareExchange(this.words, word.stopAt, never, stepsDone + 1);
  }

  /** Any rank, after each step. */
  stopsAfter(stepsDone: number): boolean {
    return Atomics.load(this.words, word.stopAt) === stepsDone;
  }
}
