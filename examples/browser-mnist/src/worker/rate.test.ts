import { expect, test } from "vitest";
import { Rate } from "./rate.ts";

test("averages the rate over the last steps, excluding pauses", () => {
  const rate = new Rate();
  expect(rate.stepsPerSecond).toBe(0);
  rate.resume(1000);
  rate.step(1100);
  rate.step(1200);
  expect(rate.stepsPerSecond).toBeCloseTo(10);
  rate.resume(60_000);
  rate.step(60_100);
  expect(rate.stepsPerSecond).toBeCloseTo(10);
  for (let now = 60_110; now <= 60_600; now += 10) rate.step(now);
  expect(rate.stepsPerSecond).toBeCloseTo(100);
});
