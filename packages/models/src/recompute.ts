import { checkpoint } from "@skein/tensor-core";
import type { Past } from "./past.ts";

/**
 * Activations to recompute in the backward pass instead of storing them: `none`, or all activations in each block
 * (`blocks`).
 */
export type Recompute = "none" | "blocks";

/** Activation-recomputation option of models that consist of blocks. */
export interface RecomputeOptions {
  /**
   * Activation recomputation. `blocks`: the forward pass stores only the input of each block, and the backward pass
   * recomputes the block (see `checkpoint`). Default: none.
   */
  readonly recompute?: Recompute;
}

/**
 * Runs a block of a model, with recomputation if enabled. With cached keys and values there is no backward pass, so
 * nothing is recomputed.
 */
export const runBlock = <Result>(recompute: Recompute, block: () => Result, past?: Past): Result =>
  recompute === "blocks" && past === undefined ? checkpoint(block)() : block();

/** Returns the parts of a transformer, with recomputation of blocks if enabled. */
export const recomputed = <Parts extends object>(parts: Parts, recompute: Recompute): Parts => ({
  ...parts,
  run: <Result>(block: () => Result, past?: Past) => runBlock(recompute, block, past),
});
