import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { moveGain } from "./move-gain.ts";

const link = { startupSeconds: 1, secondsPerByte: 0.5 };
const base = { secondsBefore: 3, secondsAfter: 1, numSteps: 10, bytesPerExpert: 4, link };

describe("moveGain", () => {
  test("waits for the busiest rank, sender or receiver", () => {
    const from = [
      { expert: 0, from: 0, to: 1 },
      { expert: 1, from: 0, to: 2 },
      { expert: 2, from: 3, to: 0 },
    ];
    const to = from.map(({ expert, from, to }) => ({ expert, from: to, to: from }));
    for (const moves of [from, to])
      expect(moveGain(moves, base)).toEqual({
        paysOff: true,
        moveSeconds: 1 + 0.5 * 4 * 2,
        gainSeconds: 15,
        breakEvenSteps: 2.5,
      });
  });

  test("pays off exactly if enough steps follow", () => {
    fc.assert(
      fc.property(fc.nat(20), fc.integer({ min: 0, max: 5 }), fc.nat(3), (numSteps, numMoves, secondsAfter) => {
        const moves = Array.from({ length: numMoves }, (_, expert) => ({ expert, from: 0, to: 1 }));
        const { paysOff, breakEvenSteps } = moveGain(moves, { ...base, numSteps, secondsAfter });
        expect(paysOff).toBe(numSteps > breakEvenSteps);
      }),
    );
  });

  test("no moves take no time; without gain, moves never pay off", () => {
    expect(moveGain([], base)).toMatchObject({ paysOff: true, moveSeconds: 0, breakEvenSteps: 0 });
    expect(moveGain([], { ...base, secondsAfter: 3 })).toMatchObject({ paysOff: false, breakEvenSteps: Infinity });
    expect(moveGain([], { ...base, numSteps: 0 }).paysOff).toBe(false);
  });

  test("rejects invalid figures", () => {
    expect(() => moveGain([], { ...base, secondsAfter: NaN })).toThrow(/secondsAfter is NaN/);
    expect(() => moveGain([], { ...base, link: { ...link, startupSeconds: -1 } })).toThrow(/startupSeconds is -1/);
  });
});
