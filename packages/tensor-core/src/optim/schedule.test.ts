import { describe, expect, it } from "vitest";
import type { Tensor } from "../graph/tensor.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import {
  cosineDecay,
  joinSchedules,
  linearRamp,
  polynomialDecay,
  resolveSchedule,
  type Schedule,
  stepDecay,
  warmUp,
} from "./schedule.ts";

const valuesOf = async (schedule: Schedule, steps: readonly number[]): Promise<number[]> => {
  const at = evaluate((step: Tensor) => resolveSchedule(schedule, step), referenceBackend());
  return Promise.all(steps.map(async (step) => (await at(NdArray.scalar(step, "i32"))).item()));
};

const cosine = (t: number): number => 0.1 + (0.5 - 0.1) * 0.5 * (1 + Math.cos((Math.PI * Math.min(t, 8)) / 8));

describe("schedules equal their formulas", () => {
  it.each<[string, Schedule, (step: number) => number]>([
    ["a constant", 0.3, () => 0.3],
    ["linearRamp", linearRamp({ from: 1, to: 3, steps: 4 }), (t) => 1 + 2 * Math.min(t / 4, 1)],
    ["cosineDecay", cosineDecay({ initial: 0.5, final: 0.1, steps: 8 }), cosine],
    ["stepDecay", stepDecay({ initial: 2, factor: 0.5, every: 3 }), (t) => 2 * 0.5 ** Math.floor(t / 3)],
    [
      "polynomialDecay",
      polynomialDecay({ initial: 0.5, final: 0.1, power: 2, steps: 8 }),
      (t) => 0.1 + 0.4 * (1 - Math.min(t, 8) / 8) ** 2,
    ],
    [
      "joinSchedules",
      joinSchedules([1, linearRamp({ from: 0, to: 4, steps: 4 }), 7], [2, 5]),
      (t) => (t < 2 ? 1 : t < 5 ? t - 2 : 7),
    ],
    [
      "warmUp",
      warmUp(3, cosineDecay({ initial: 0.5, final: 0.1, steps: 8 })),
      (t) => (Math.min(t + 1, 4) / 4) * cosine(Math.max(t - 3, 0)),
    ],
    ["warmUp of no steps", warmUp(0, 2), () => 2],
  ])("%s", async (_, schedule, formula) => {
    const steps = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 1000];
    const values = await valuesOf(schedule, steps);
    values.forEach((value, i) => expect(value).toBeCloseTo(formula(steps[i]!), 6));
  });

  it("rejects invalid arguments, with the cure", () => {
    expect(() => joinSchedules([1, 2], [])).toThrow(/2 schedules and 0 boundaries/);
    expect(() => joinSchedules([1, 2, 3], [5, 5])).toThrow(/do not increase/);
    expect(() => linearRamp({ from: 0, to: 1, steps: 0 })).toThrow(/integer from 1/);
    expect(() => stepDecay({ initial: 1, factor: 0, every: 2 })).toThrow(/not positive/);
    expect(() => polynomialDecay({ initial: 1, power: 0, steps: 3 })).toThrow(/power 0 is not positive/);
    expect(() => stepDecay({ initial: 1, factor: 0.5, decay: 2 } as never)).toThrow(
      /unknown option "decay"; its options are initial, factor, every/,
    );
    expect(() => cosineDecay({ initial: NaN, steps: 2 })).toThrow(
      /initial is the number NaN, but it must be a finite number/,
    );
    expect(() => cosineDecay(0.1 as never)).toThrow(/write cosineDecay\(\{ initial: 0\.1 \}\)/);
    expect(() => warmUp(3, "0.1" as never)).toThrow(/its schedule is "0\.1", but it must be a number or a schedule/);
  });

  it("rejects a schedule that does not return a scalar", async () => {
    await expect(valuesOf((() => 0.1) as never, [0])).rejects.toThrow(
      /a schedule returned the number 0\.1, but it must return an f32 scalar/,
    );
  });
});
