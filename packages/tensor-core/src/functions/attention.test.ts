import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { vjp } from "../autodiff/vjp.ts";
import type { Tensor } from "../graph/tensor.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import type { Shape } from "../shape.ts";
import { attention, type AttentionOptions } from "./attention.ts";
import { onesLike, subtract } from "./elementwise.ts";
import { broadcastTo, concat, reshape, slice } from "./movement.ts";

const reference = referenceBackend();
const wave = (shape: Shape, seed: number): NdArray =>
  NdArray.from(
    Array.from({ length: shape.reduce((product, size) => product * size, 1) }, (_, i) => Math.sin((i + 1) * seed)),
    shape,
  );
const integers = (...values: number[]): NdArray => NdArray.from(values, [values.length], "i32");
const run = async (fn: (...inputs: Tensor[]) => Tensor, ...inputs: NdArray[]): Promise<number[]> =>
  ((await evaluate(fn, reference)(...inputs)) as NdArray).toNumbers();

describe("attention", () => {
  const [q, k, v] = [wave([1, 1, 4, 3], 1.3), wave([1, 1, 4, 3], 0.7), wave([1, 1, 4, 3], 2.1)];

  test("is the mean of the visible values for zero scores", async () => {
    const out = await run(
      (q, k, v) => attention(q!, k!, v!, { causal: true }),
      NdArray.zeros("f32", [1, 1, 4, 3]),
      k,
      v,
    );
    const values = v.toNumbers();
    for (let d = 0; d < 3; d++) {
      expect(out[d]).toBeCloseTo(values[d]!, 6);
      expect(out[9 + d]).toBeCloseTo((values[d]! + values[3 + d]! + values[6 + d]! + values[9 + d]!) / 4, 6);
    }
  });

  test("causal: a later key changes no earlier query", async () => {
    const changed = NdArray.from(
      k.toNumbers().map((value, i) => (i >= 9 ? value + 5 : value)),
      k.shape,
    );
    const causal = (q?: Tensor, k?: Tensor, v?: Tensor): Tensor => attention(q!, k!, v!, { causal: true });
    const [before, after] = [await run(causal, q, k, v), await run(causal, q, changed, v)];
    expect(after.slice(0, 9)).toEqual(before.slice(0, 9));
    expect(after.slice(9)).not.toEqual(before.slice(9));
  });

  test("causal with one query at the end sees all keys: decoding equals the last row of the whole", async () => {
    const whole = await run((q, k, v) => attention(q!, k!, v!, { causal: true }), q, k, v);
    const last = await run((q, k, v) => attention(slice(q!, [0, 0, 3]), k!, v!, { causal: true }), q, k, v);
    last.forEach((value, i) => expect(value).toBeCloseTo(whole[9 + i]!, 6));
  });

  test("grouped heads equal repeated heads", async () => {
    const [q, k, v] = [wave([2, 6, 3, 4], 1.3), wave([2, 2, 5, 4], 0.7), wave([2, 2, 5, 4], 2.1)];
    const repeated = (x: Tensor): Tensor =>
      reshape(broadcastTo(reshape(x, [2, 2, 1, 5, 4]), [2, 2, 3, 5, 4]), [2, 6, 5, 4]);
    for (const causal of [false, true])
      expect(await run((q, k, v) => attention(q!, k!, v!, { causal }), q, k, v)).toEqual(
        await run((q, k, v) => attention(q!, repeated(k!), repeated(v!), { causal }), q, k, v),
      );
  });

  test("key lengths equal a cut of the keys", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 4 }), async (length, queries) => {
        const [q, k, v] = [wave([1, 2, queries, 3], 1.3), wave([1, 1, 6, 3], 0.7), wave([1, 1, 6, 3], 2.1)];
        const limited = await run(
          (q, k, v, keyLengths) => attention(q!, k!, v!, { keyLengths: keyLengths! }),
          q,
          k,
          v,
          integers(length),
        );
        const cut = (x?: Tensor): Tensor => slice(x!, [0, 0, 0], [1, 1, length]);
        expect(limited).toEqual(await run((q, k, v) => attention(q!, cut(k), cut(v)), q, k, v));
        // `queryStarts` places the queries at the end of the cached keys.
        const cached = await run(
          (q, k, v, keyLengths) =>
            attention(q!, k!, v!, {
              causal: true,
              keyLengths: keyLengths!,
              queryStarts: subtract(keyLengths!, queries),
            }),
          q,
          k,
          v,
          integers(length),
        );
        expect(cached).toEqual(await run((q, k, v) => attention(q!, cut(k), cut(v), { causal: true }), q, k, v));
      }),
      { numRuns: 40 },
    );
  });

  test("a padded prompt attends causally to its valid keys", async () => {
    const padded = [wave([1, 1, 6, 3], 1.3), wave([1, 1, 6, 3], 0.7), wave([1, 1, 6, 3], 2.1)];
    const causal = await run(
      (q, k, v, i) => attention(q!, k!, v!, { causal: true, keyLengths: i! }),
      ...padded,
      integers(4),
    );
    const whole = await run((q, k, v) => attention(q!, k!, v!, { causal: true }), ...padded);
    const all = await run((q, k, v, i) => attention(q!, k!, v!, { keyLengths: i! }), ...padded, integers(4));
    expect(causal).toEqual([...whole.slice(0, 12), ...all.slice(12)]);
  });

  test("a batch entry without keys yields zeros and gets no gradient", async () => {
    const inputs = [wave([2, 1, 3, 2], 1.3), wave([2, 1, 4, 2], 0.7), wave([2, 1, 4, 2], 2.1), integers(0, 4)];
    const limited = (q?: Tensor, k?: Tensor, v?: Tensor, keyLengths?: Tensor): Tensor =>
      attention(q!, k!, v!, { keyLengths: keyLengths! });
    expect((await run(limited, ...inputs)).slice(0, 6)).toEqual([0, 0, 0, 0, 0, 0]);
    const gradient = await run(
      (...all) =>
        concat(vjp((own: readonly Tensor[]) => limited(...own, all[3]), all.slice(0, 3)).pullback(onesLike(all[0]!)), {
          dim: 2,
        }),
      ...inputs,
    );
    expect(gradient.slice(0, 22).every((value) => value === 0)).toBe(true);
    expect(gradient.slice(22).every((value) => Number.isFinite(value) && value !== 0)).toBe(true);
  });

  test("names mismatched limits", async () => {
    const limited = (options: (i: Tensor) => AttentionOptions, lengths: NdArray): Promise<number[]> =>
      run((q, k, v, i) => attention(q!, k!, v!, options(i!)), q, k, v, lengths);
    await expect(limited((keyLengths) => ({ keyLengths }), integers(1, 2))).rejects.toThrow(
      /keyLengths are i32\[2\], but q \[1, 1, 4, 3\] needs i32\[1\]: one per batch entry/,
    );
    await expect(limited((queryStarts) => ({ queryStarts, causal: true }), wave([1], 1))).rejects.toThrow(
      /queryStarts are f32\[1\]/,
    );
    await expect(limited((queryStarts) => ({ queryStarts }), integers(1))).rejects.toThrow(
      /but causal is false; set causal/,
    );
  });

  test("names mismatched shapes", async () => {
    await expect(
      run((q, k, v) => attention(q!, k!, v!), wave([1, 3, 4, 3], 1), wave([1, 2, 4, 3], 1), wave([1, 2, 4, 3], 1)),
    ).rejects.toThrow(/q \[1, 3, 4, 3\] has 3 heads, which is not divisible by the 2 heads of k \[1, 2, 4, 3\]/);
    await expect(run((q, k, v) => attention(q!, k!, v!), q, wave([1, 2, 4, 3], 1), v)).rejects.toThrow(
      /q \[1, 1, 4, 3\], k \[1, 2, 4, 3\] and v \[1, 1, 4, 3\] do not fit/,
    );
  });
});
