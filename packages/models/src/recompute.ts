import { checkpoint } from "@skein/tensor-core";
import type { Past } from "./past.ts";

/**
 * Part of the forward pass that the backward pass recomputes instead of storing: nothing, or each block from its input.
 */
export type Recompute = "none" | "blocks";

/**
 * Runs a block of a model, with recomputation if set. With cached keys there is no backward pass, and no recomputation.
 */
export const runBlock = <Result>(recompute: Recompute, block: () => Result, past?: Past): Result =>
  recompute === "blocks" && past === undefined ? checkpoint(block)() : block();
