import { evaluate, randomKey, referenceBackend, type Tensor } from "@skein/tensor-core";
import { describe, expect, it } from "vitest";
import { fans, glorotUniform, headNormal, heNormal } from "./initialisers.ts";

describe("initialisers", () => {
  it("fans include the taps of a kernel", () => {
    expect(fans([784, 512])).toEqual({ fanIn: 784, fanOut: 512 });
    expect(fans([3, 3, 32, 64])).toEqual({ fanIn: 288, fanOut: 576 });
  });

  it.each([
    ["heNormal", heNormal, 2 / 288],
    ["glorotUniform", glorotUniform, 2 / (288 + 576)],
    ["headNormal", headNormal, 1e-4],
  ] as const)("%s has mean 0 and the variance of the cited source", async (_, initialise, variance) => {
    const values = (
      await evaluate((key: Tensor) => initialise(key, [3, 3, 32, 64]), referenceBackend())(randomKey(1))
    ).toNumbers();
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    // The test draws 18,432 values. The tolerances are five standard errors of the mean and of the variance (at most
    // √(2/n) times the variance).
    expect(Math.abs(mean)).toBeLessThan(5 * Math.sqrt(variance / values.length));
    expect(Math.abs(values.reduce((sum, value) => sum + value * value, 0) / values.length / variance - 1)).toBeLessThan(
      5 * Math.sqrt(2 / values.length),
    );
    if (initialise === glorotUniform)
      expect(Math.max(...values.map(Math.abs))).toBeLessThanOrEqual(Math.sqrt(6 / (288 + 576)));
  });
});
