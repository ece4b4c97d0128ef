import fc from "fast-check";
import { expect, test } from "vitest";
import type { Clock } from "../clock.ts";
import { RejectionLog } from "./rejection-log.ts";

/** A clock controlled by a test. */
class TestClock implements Clock {
  #now = 0;
  #due: { readonly at: number; readonly call: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  after(milliseconds: number, call: () => void): () => void {
    const entry = { at: this.#now + milliseconds, call };
    this.#due.push(entry);
    return () => {
      this.#due = this.#due.filter((other) => other !== entry);
    };
  }

  turn(milliseconds: number): void {
    this.#now += milliseconds;
    const due = this.#due.filter(({ at }) => at <= this.#now);
    this.#due = this.#due.filter(({ at }) => at > this.#now);
    for (const { call } of due) call();
  }
}

test("the number of log lines depends on time and not on the number of connections, and all connections are counted", () => {
  const burst = fc.record({ connections: fc.nat(3000), pause: fc.nat(20_000), length: fc.nat(2000) });
  fc.assert(
    fc.property(fc.array(burst, { maxLength: 10 }), (bursts) => {
      const clock = new TestClock();
      const lines: string[] = [];
      const log = new RejectionLog(({ message }) => lines.push(message), clock);
      let total = 0;
      for (const { connections, pause, length } of bursts) {
        for (let i = 0; i < connections; i++) log.note("dropped", "x".repeat(length));
        total += connections;
        clock.turn(pause);
      }
      log.flush();
      const windows = Math.ceil(clock.now() / 10_000) + 1;
      expect(lines.length).toBeLessThanOrEqual(9 * windows);
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(401);
      const leftOut = lines
        .map((line) => Number(/^(\d+) more unauthenticated connections/.exec(line)?.[1] ?? 0))
        .reduce((sum, count) => sum + count, 0);
      expect(lines.filter((line) => !line.includes("more unauthenticated connections")).length + leftOut).toBe(total);
    }),
    { numRuns: 30 },
  );
});
