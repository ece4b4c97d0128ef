import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { contendedSeconds, fitContention } from "./fit-contention.ts";

const grid = [1, 2, 3, 5, 8].flatMap((numFlows) => [1e5, 1e6, 1e7].map((bytes) => ({ numFlows, bytes })));

test("recovers the penalty from exact times, for any link", () => {
  const links = fc.record({
    startupSeconds: fc.double({ min: 0, max: 1e-2, noNaN: true }),
    secondsPerByte: fc.double({ min: 1e-10, max: 1e-7, noNaN: true }),
  });
  fc.assert(
    fc.property(links, fc.double({ min: 0, max: 3, noNaN: true }), (link, penaltyPerFlow) => {
      const samples = grid.map((at) => ({
        ...at,
        seconds: contendedSeconds(link, { penaltyPerFlow }, at.numFlows, at.bytes),
      }));
      expect(fitContention(link, samples).penaltyPerFlow).toBeCloseTo(penaltyPerFlow, 5);
    }),
    { numRuns: 30 },
  );
});

test("without a penalty, k flows get 1/k of the link each, and 1/b in total", () => {
  const link = { startupSeconds: 0, secondsPerByte: 1e-9 };
  expect(contendedSeconds(link, { penaltyPerFlow: 0 }, 4, 1e6)).toBeCloseTo(4e-3, 12);
  expect(contendedSeconds(link, { penaltyPerFlow: 0.5 }, 4, 1e6)).toBeCloseTo(5.5e-3, 12);
  expect(contendedSeconds(link, { penaltyPerFlow: 7 }, 1, 1e6)).toBeCloseTo(1e-3, 12);
});

test("a link with more throughput for several flows than for one gives penalty 0, and `unbounded` below 0", () => {
  const link = { startupSeconds: 0, secondsPerByte: 1e-9 };
  const { penaltyPerFlow, unbounded } = fitContention(link, [
    { numFlows: 2, bytes: 1e6, seconds: 1.9e-3 },
    { numFlows: 3, bytes: 1e6, seconds: 2.8e-3 },
  ]);
  expect(penaltyPerFlow).toBe(0);
  expect(unbounded).toBeCloseTo(-0.1, 2);
});

describe("refuses", () => {
  const link = { startupSeconds: 0, secondsPerByte: 1e-9 };
  test.each([
    ["no samples", link, [], "0 of 0 samples have several flows"],
    ["flows of one alone", link, [{ numFlows: 1, bytes: 1, seconds: 1 }], "0 of 1 samples have several flows"],
    ["half a flow", link, [{ numFlows: 1.5, bytes: 1, seconds: 1 }], "1.5 flows of 1 bytes"],
    ["a time that is none", link, [{ numFlows: 2, bytes: 1, seconds: Number.NaN }], "in NaN s"],
    [
      "a link without a rate",
      { startupSeconds: 0, secondsPerByte: 0 },
      [{ numFlows: 2, bytes: 1, seconds: 1 }],
      "the model of one flow is 0 s + 0 s/byte",
    ],
  ])("%s", (_, model, samples, message) => {
    expect(() => fitContention(model, samples)).toThrow(message);
  });
});
