import { NdArray } from "@skein/tensor-core";
import fc from "fast-check";

/** Width of all tokens in these tests. */
export const width = 3;

/** Key for random numbers. */
export const keyOf = (seed: number): NdArray => NdArray.from([seed, 7], [2], "u32");

/**
 * Tokens f32 [count, width]. Zeros tie for all experts, so all go to the first expert; equal tokens tie for slots;
 * other tokens spread.
 */
export const tokensOf = (count: number): fc.Arbitrary<NdArray> => {
  const number = fc.integer({ min: -40, max: 40 }).map((value) => value / 8);
  const row = fc.oneof(
    fc.constantFrom([0, 0, 0], [1, -2, 0.5]),
    fc.array(number, { minLength: width, maxLength: width }),
  );
  return fc
    .array(row, { minLength: count, maxLength: count })
    .map((rows) => NdArray.from(rows.flat(), [count, width], "f32"));
};
