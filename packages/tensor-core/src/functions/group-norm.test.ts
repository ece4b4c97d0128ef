import { describe, expect, test } from "vitest";
import type { Tensor } from "../graph/tensor.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { elementCount, type Shape } from "../shape.ts";
import { ones, zeros } from "./elementwise.ts";
import { groupNorm } from "./group-norm.ts";
import { reshape } from "./movement.ts";
import { layerNorm } from "./normalisation.ts";

const filled = (shape: Shape): NdArray =>
  NdArray.from(
    Array.from({ length: elementCount(shape) }, (_, i) => Math.sin(3 * i) + i / 7),
    shape,
  );
const plain = (x: Tensor, groups: number): Tensor =>
  groupNorm(x, ones([x.shape.at(-1)!]), zeros([x.shape.at(-1)!]), { groups });
const run = async (fn: (x: Tensor) => Tensor, x: NdArray): Promise<number[]> =>
  ((await evaluate(fn, referenceBackend())(x)) as NdArray).toNumbers();

describe("groupNorm", () => {
  test("with one group is a layer norm over all pixels and channels", async () => {
    const x = filled([2, 3, 4, 6]);
    const whole = (own: Tensor): Tensor =>
      reshape(layerNorm(reshape(own, [2, 72]), ones([72]), zeros([72])), own.shape);
    expect(await run((own) => plain(own, 1), x)).toEqual(await run(whole, x));
  });

  test("each group of each sample has mean 0 and variance 1", async () => {
    const y = await run((own) => plain(own, 3), filled([2, 5, 6]));
    for (let sample = 0; sample < 2; sample++) {
      for (let group = 0; group < 3; group++) {
        const own = y.filter((_, i) => Math.floor(i / 30) === sample && Math.floor((i % 6) / 2) === group);
        expect(own.length).toBe(10);
        expect(own.reduce((sum, value) => sum + value, 0)).toBeCloseTo(0, 5);
        expect(own.reduce((sum, value) => sum + value * value, 0) / 10).toBeCloseTo(1, 4);
      }
    }
  });

  test.each([
    ["groups", (x: Tensor) => plain(x, 4), /the 6 channels of f32\[2, 3, 6\] do not split into 4 groups/],
    [
      "groups that were forgotten",
      (x: Tensor) => groupNorm(x, ones([6]), zeros([6]), {} as never),
      /into undefined groups/,
    ],
    [
      "gamma",
      (x: Tensor) => groupNorm(x, ones([3]), zeros([6]), { groups: 3 }),
      /gamma f32\[3\] does not match f32\[2, 3, 6\].*f32\[6\]/,
    ],
    ["beta", (x: Tensor) => groupNorm(x, ones([6]), zeros([6, 1]), { groups: 3 }), /beta f32\[6, 1\] does not match/],
    [
      "a number of groups without its name",
      (x: Tensor) => groupNorm(x, ones([6]), zeros([6]), 3 as never),
      /\{ groups: 3 \}/,
    ],
  ] as const)("rejects %s that does not fit", async (_, fn, message) => {
    await expect(run(fn, filled([2, 3, 6]))).rejects.toThrow(message);
  });
});
