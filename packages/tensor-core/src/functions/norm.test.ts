import { expect, test } from "vitest";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { norm } from "./norm.ts";

test("norms over all entries, or over some dimensions, optionally kept", async () => {
  const x = NdArray.from([3, 0, 4, 0, 0, 12], [2, 3]);
  const run = (fn: Parameters<typeof evaluate>[0]): Promise<NdArray> =>
    evaluate(fn, referenceBackend())(x as never) as unknown as Promise<NdArray>;
  expect((await run(norm as never)).toNumbers()).toEqual([13]);
  const rows = await run(((t: never) => norm(t, { dims: 1, keepDims: true })) as never);
  expect([rows.shape, rows.toNumbers()]).toEqual([
    [2, 1],
    [5, 12],
  ]);
});

test("accepts only f32", async () => {
  const whole = NdArray.from([1, 2], [2], "i32");
  await expect(evaluate(norm as never, referenceBackend())(whole as never)).rejects.toThrow(/i32\[2\].*norm takes f32/);
});
