import { NdArray } from "@skein/tensor-core";
import fc from "fast-check";

/** Width of all tokens in the tests of this package. */
export const width = 3;

/** Returns a random key for a seed, u32[2]. */
export const keyOf = (seed: number): NdArray => NdArray.from([seed, 7], [2], "u32");

/**
 * Generates tokens f32 [count, width]. For tokens of zeros, all experts tie, so these tokens go to the first experts;
 * equal tokens tie for slots; all other tokens spread over the experts.
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
