import { describe, expect, test } from "vitest";
import { ShapeError } from "../errors.ts";
import type { Tensor } from "../graph/tensor.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { cast } from "./elementwise.ts";
import { mean, variance } from "./reduce.ts";

describe.each([
  ["mean", mean],
  ["variance", variance],
] as const)("%s of whole numbers", (name, fn) => {
  const numbers = (x: Tensor): Tensor => fn(x);

  test.each(["i32", "u32"] as const)("%s is rejected with the cure, a single one too", async (dtype) => {
    for (const values of [[1, 2, 4], [3]]) {
      const wrong = evaluate(numbers, referenceBackend())(NdArray.from(values, [values.length], dtype));
      await expect(wrong).rejects.toThrow(ShapeError);
      await expect(wrong).rejects.toThrow(
        new RegExp(`${name}: takes f32, got ${dtype}\\[${values.length}\\].*cast it to f32`),
      );
    }
  });

  test("is correct after a cast", async () => {
    const y = await evaluate(
      (x: Tensor) => fn(cast(x, "f32")),
      referenceBackend(),
    )(NdArray.from([1, 2, 6], [3], "i32"));
    expect(y.item()).toBeCloseTo(name === "mean" ? 3 : 14 / 3, 6);
  });
});
