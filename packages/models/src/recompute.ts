import { checkpoint } from "@skein/tensor-core";

/**
 * What of a model's forward pass is computed again for the backward pass instead of being kept: nothing, or each block
 * from what enters it.
 */
export type Recompute = "none" | "blocks";

/** Compute a block of a model, as its options say. */
export const asBlock = <Result>(recompute: Recompute, block: () => Result): Result =>
  recompute === "blocks" ? checkpoint(block)() : block();
