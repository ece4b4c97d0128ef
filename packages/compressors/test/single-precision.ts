import type { ArrayTree, MapTree, NdArray, Tensor } from "@skein/tensor-core";
import { runWorld, singlePrecision } from "./world.ts";

/** Variant of `runWorld` in single precision, so that results contain the rounding errors of f32. */
export const runSingle = <Args extends readonly unknown[], Result>(
  fn: (...args: Args) => Result,
  ranks: readonly { [K in keyof Args]: ArrayTree<Args[K]> }[],
): MapTree<Result, Tensor, NdArray>[] => runWorld(fn, ranks, undefined, singlePrecision);
