import { type DType, elementCount, NdArray, type Shape } from "@skein/tensor-core";
import { uniformFloat64 } from "pure-rand/distribution/uniformFloat64";
import { mersenne } from "pure-rand/generator/mersenne";

/**
 * Returns a generator of test inputs: uniform in [0, 1), multiples of 2⁻⁵³. The generator is independent of the random
 * streams under test.
 *
 * Source: Matsumoto and Nishimura 1998, MT19937. MT19937 mixes the seed when it is initialized. The small generators of
 * the same library start with the seed itself: for seeds 1, 2 and 3 their first number is 1 − 2⁻²⁶·seed, so each array
 * of normal values would start with an outlier.
 */
export const seeded = (seed: number): (() => number) => {
  const generator = mersenne(seed);
  return () => uniformFloat64(generator);
};

/**
 * Draws standard normal values, rounded to `dtype`. Integers are normal values times 5, rounded. Unsigned integers are
 * their magnitudes. Bools are true for positive values.
 */
export const normalArray = (shape: Shape, seed = 1, dtype: DType = "f32"): NdArray => {
  const random = seeded(seed);
  const draw = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const values = Array.from({ length: elementCount(shape) }, () => {
    const value = draw();
    if (dtype === "bool") return value > 0 ? 1 : 0;
    if (dtype === "i32") return Math.round(value * 5);
    if (dtype === "u32" || dtype === "u8") return Math.abs(Math.round(value * 5));
    return value;
  });
  return NdArray.from(values, shape, dtype);
};

/** Draws values in [low, high). Integers are rounded down. */
export const uniformArray = (shape: Shape, low: number, high: number, seed = 1, dtype: DType = "f32"): NdArray => {
  const random = seeded(seed);
  const values = Array.from({ length: elementCount(shape) }, () => {
    const value = low + (high - low) * random();
    return dtype === "f32" || dtype === "f16" || dtype === "bf16" ? value : Math.floor(value);
  });
  return NdArray.from(values, shape, dtype);
};
