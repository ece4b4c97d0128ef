import { type DType, elementCount, NdArray, type Shape } from "@skein/tensor-core";

/** A small seeded generator for test inputs (mulberry32); independent of the streams under test. */
export const seeded = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
};

/** Standard normal values, rounded to what `dtype` holds; integers and bools get a small spread around zero. */
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

/** Values in [low, high). Integers are rounded down. */
export const uniformArray = (shape: Shape, low: number, high: number, seed = 1, dtype: DType = "f32"): NdArray => {
  const random = seeded(seed);
  const values = Array.from({ length: elementCount(shape) }, () => {
    const value = low + (high - low) * random();
    return dtype === "f32" || dtype === "f16" || dtype === "bf16" ? value : Math.floor(value);
  });
  return NdArray.from(values, shape, dtype);
};
