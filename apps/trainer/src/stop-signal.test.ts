import fc from "fast-check";
import { expect, test } from "vitest";
import { StopSignal } from "./stop-signal.ts";

test("a stop that is asked for between two steps ends the run after the first", () => {
  const signal = StopSignal.create(0);
  expect(signal.begin(1)).toBe(true);
  expect(signal.stopsAfter(1)).toBe(false);
  signal.decide(signal.request());
  expect(signal.begin(2)).toBe(false);
});

test("a stop that is asked for during a step ends the run after it", () => {
  const signal = StopSignal.create(7);
  expect(signal.begin(8)).toBe(true);
  signal.decide(signal.request());
  expect(signal.stopsAfter(8)).toBe(true);
});

// Two processes of one rank each, which may be one step apart; the stop comes at any moment of either.
test("wherever the stop comes, all ranks end after the same step", () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(0, 1), { minLength: 1, maxLength: 30 }), fc.nat(30), (turns, moment) => {
      const signals = [0, 1].map(() => StopSignal.create(0));
      const done = [0, 0];
      const begun = [false, false];
      const over = [false, false];
      const turn = (rank: number): void => {
        if (over[rank]) return;
        if (!begun[rank]) {
          if (done[rank]! > done[1 - rank]!) return; // it would wait for the other in its collectives
          if (signals[rank]!.begin(done[rank]! + 1)) begun[rank] = true;
          else over[rank] = true;
          return;
        }
        if (!begun[1 - rank] && done[1 - rank]! <= done[rank]!) return; // the other takes part in no such step yet
        begun[rank] = false;
        done[rank]! += 1;
        if (signals[rank]!.stopsAfter(done[rank]!)) over[rank] = true;
      };
      turns.slice(0, moment).forEach(turn);
      const last = Math.max(...signals.map((signal) => signal.request()), 1);
      for (const signal of signals) signal.decide(last);
      turns.slice(moment).forEach(turn);
      for (let i = 0; i < 20; i++) turn(i % 2);
      expect(over).toEqual([true, true]);
      expect(done).toEqual([last, last]);
    }),
    { numRuns: 2000 },
  );
});
