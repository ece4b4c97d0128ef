import type { Clock } from "../clock.ts";

/** Things that happen one after the other, each not before its time. */
export class DelayLine {
  readonly #clock: Clock;
  readonly #waiting: { readonly due: number; readonly act: () => void }[] = [];
  #armed = false;
  #acting: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * The time; while something of this line happens, the time at which it was due. A timer that fires late then delays
   * that one thing, and not all that follow from it.
   */
  now(): number {
    return this.#acting ?? this.#clock.now();
  }

  /** Let `act` happen at `due`, and not before what was given earlier. */
  push(due: number, act: () => void): void {
    this.#waiting.push({ due, act });
    if (!this.#armed) this.#arm();
  }

  /** Nothing more happens. */
  clear(): void {
    this.#waiting.length = 0;
  }

  #arm(): void {
    const first = this.#waiting[0];
    this.#armed = first !== undefined;
    if (first === undefined) return;
    this.#clock.after(Math.max(0, first.due - this.#clock.now()), () => {
      while (this.#waiting.length > 0 && this.#waiting[0]!.due <= this.#clock.now()) {
        const { due, act } = this.#waiting.shift()!;
        this.#acting = due;
        try {
          act();
        } finally {
          this.#acting = undefined;
        }
      }
      this.#arm();
    });
  }
}
