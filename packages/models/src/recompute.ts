import { checkpoint } from "@skein/tensor-core";
import type { Past } from "./past.ts";

/**
 * What of a model's forward pass is computed again for the backward pass instead of being kept: nothing, or each block
 * from what enters it.
 */
export type Recompute = "none" | "blocks";

/** Compute a block of a model, as its options say; behind a past, whose keys leave the block, there is no way back. */
export const asBlock = <Result>(recompute: Recompute, block: () => Result, past?: Past): Result =>
  recompute === "blocks" && past === undefined ? checkpoint(block)() : block();
