import { describe, expect, test } from "vitest";
import {
  dynamicLossScale,
  evaluate,
  type LossScaleOptions,
  type LossScaleState,
  NdArray,
  referenceBackend,
  type Tensor,
} from "../index.ts";

/** Returns the loss scale after each step of a sequence. `true`: step without overflow; `false`: step with overflow. */
const scalesAfter = async (steps: readonly boolean[], options: LossScaleOptions): Promise<number[]> => {
  const rule = dynamicLossScale(options);
  const backend = referenceBackend();
  let state = await evaluate(() => rule.init(), backend)();
  const scales: number[] = [];
  for (const sound of steps) {
    state = (await evaluate((before: LossScaleState, is: Tensor) => rule.update(before, is), backend)(
      state as never,
      NdArray.from([sound ? 1 : 0], [], "bool") as never,
    )) as never;
    scales.push((state.scale as unknown as NdArray).item());
  }
  return scales;
};

describe("dynamicLossScale", () => {
  test("halves on every overflow, down to its minimum", async () => {
    expect(await scalesAfter([false, false, false, false], { initial: 8, minimum: 2 })).toEqual([4, 2, 2, 2]);
  });

  test("doubles after `growthInterval` consecutive steps without overflow, and restarts the count after each change", async () => {
    const sound = [true, true, true, true, true, true, false, true, true, false, true, true, true];
    expect(await scalesAfter(sound, { initial: 4, growthInterval: 3 })).toEqual([
      4, 4, 8, 8, 8, 16, 8, 8, 8, 4, 4, 4, 8,
    ]);
  });

  test("stops growing at its maximum", async () => {
    const sound = Array<boolean>(4).fill(true);
    expect(await scalesAfter(sound, { initial: 4, growthInterval: 1, maximum: 16 })).toEqual([8, 16, 16, 16]);
    expect(await scalesAfter(sound, { initial: 2 ** 24, growthInterval: 1 })).toEqual(Array(4).fill(2 ** 24));
    expect(await scalesAfter([true], { initial: 2 ** 30, growthInterval: 1 })).toEqual([2 ** 30]);
  });

  test("rejects a scale that would change the bits of gradients", () => {
    expect(() => dynamicLossScale({ initial: 1000 })).toThrow(/initial is 1000.*power of two/);
    expect(() => dynamicLossScale({ minimum: 0 })).toThrow(/minimum is 0/);
    expect(() => dynamicLossScale({ initial: 8, maximum: 4 })).toThrow(/maximum is 4.*at least 8/);
  });
});
