import type { Clock } from "../src/clock.ts";

/**
 * A clock that advances only when a test advances it. Timers with the same due time fire in the order in which they
 * were set.
 */
export class VirtualClock implements Clock {
  #now = 0;
  #timers: { readonly due: number; readonly call: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  after(milliseconds: number, call: () => void): () => void {
    const timer = { due: this.#now + milliseconds, call };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /**
   * Advances the clock. With `lateness`, every timer fires that number of milliseconds after its due time, as with a
   * coarse clock.
   */
  advance(milliseconds: number, lateness = 0): void {
    const end = this.#now + milliseconds;
    for (;;) {
      const next = this.#timers.reduce<{ due: number; call: () => void } | undefined>(
        (first, timer) => (first === undefined || timer.due < first.due ? timer : first),
        undefined,
      );
      if (next === undefined || next.due + lateness > end) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#now = Math.max(this.#now, next.due + lateness);
      next.call();
    }
    this.#now = end;
  }
}
