import type { Clock } from "../clock.ts";

/** Queue of actions that run in order, each at its due time or later. */
export class DelayLine {
  readonly #clock: Clock;
  readonly #waiting: { readonly due: number; readonly act: () => void }[] = [];
  #armed = false;
  #acting: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Returns the current time or, while an action runs, the due time of this action. A timer that fires late then delays
   * only this action, not the later actions that this action queues.
   */
  now(): number {
    return this.#acting ?? this.#clock.now();
  }

  /** Queues `act` to run at `due`, and after all queued actions. */
  push(due: number, act: () => void): void {
    this.#waiting.push({ due, act });
    if (!this.#armed) this.#arm();
  }

  /** Discards all queued actions. */
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
