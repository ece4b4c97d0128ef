import { expect, test } from "vitest";
import { fitContention, fitLeastSquares, fitSlowdown } from "@skein/cost-model/calibration";
import { alone, linkAlone, meanOfFlows, slowestOfFlows, worstOfFlows } from "./contention.ts";

test("one job alone takes 14.9 ms + 9.917 ns per byte, by least squares of seconds", () => {
  const { parameters, standardErrors } = fitLeastSquares(
    ([a, b]) => alone.map(({ bytes, seconds }) => a! + b! * bytes - seconds),
    [1e-3, 1e-8],
  );
  expect(1e3 * parameters[0]!).toBeCloseTo(14.9, 1);
  expect(1e9 * parameters[1]!).toBeCloseTo(9.917, 2);
  expect(standardErrors[1]! / parameters[1]!).toBeLessThan(0.02);
  expect(linkAlone.startupSeconds / parameters[0]!).toBeCloseTo(1, 2);
  expect(linkAlone.secondsPerByte / parameters[1]!).toBeCloseTo(1, 3);
});

test("the mean of flows pays no penalty, the slowest about half of b, the worst more than b", () => {
  const [mean, slowest, worst] = [meanOfFlows, slowestOfFlows, worstOfFlows].map((samples) =>
    fitContention(linkAlone, samples),
  );
  expect(Math.abs(mean!.unbounded)).toBeLessThan(0.05);
  expect(mean!.residual).toBeLessThan(0.04);
  expect(slowest!.penaltyPerFlow).toBeCloseTo(0.58, 2);
  expect(worst!.penaltyPerFlow).toBeGreaterThan(1);
});

test("as slow-downs: the mean of 16 is slowed 15 times, the slowest 29 times", () => {
  const of16 = (samples: typeof alone): number =>
    fitSlowdown(
      linkAlone,
      samples.filter(({ numFlows }) => numFlows === 16),
    );
  expect(of16(meanOfFlows)).toBeCloseTo(14.9, 1);
  expect(of16(slowestOfFlows)).toBeCloseTo(28.6, 1);
});
