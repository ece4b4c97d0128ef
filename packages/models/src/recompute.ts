import { checkpoint } from "@skein/tensor-core";
import type { Past } from "./past.ts";

/**
 * Activations to recompute in the backward pass instead of storing them: none, or those of each block, from the block's
 * input.
 */
export type Recompute = "none" | "blocks";

/**
 * Runs a block of a model, with recomputation if enabled. With cached keys there is no backward pass, so nothing is
 * recomputed.
 */
export const runBlock = <Result>(recompute: Recompute, block: () => Result, past?: Past): Result =>
  recompute === "blocks" && past === undefined ? checkpoint(block)() : block();
