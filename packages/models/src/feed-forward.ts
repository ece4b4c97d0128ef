// Shapes: B batch, T positions, D width, F hidden width.
import { foldIn, gelu, multiply, silu, type Tensor } from "@skein/tensor-core";
import { initProjection, project, type Projection } from "./projection.ts";
import type { Branch } from "./transformer-block.ts";

/** Parameters of a feed-forward branch with two matrices. */
export interface FeedForwardParams {
  /** Up projection, [D, F]. */
  readonly up: Projection;
  /** Down projection, [F, D]. */
  readonly down: Projection;
}

/** Parameters of SwiGLU. */
export interface GatedFeedForwardParams extends FeedForwardParams {
  /** Gate matrix, [D, F]. */
  readonly gate: Projection;
}

export interface FeedForwardOptions {
  /** D, width of the inputs and outputs. */
  readonly width: number;
  /** F, hidden width. */
  readonly hidden: number;
  /** Whether the matrices have biases. */
  readonly bias: boolean;
  /** Standard deviation of the initial down projection. Its output is added to the residual stream. */
  readonly deviation: number;
}

/**
 * Returns a feed-forward branch with two matrices and an activation function: `activation(x U) V`.
 * @param keys Integer per matrix that is folded into the block's key.
 */
export const feedForwardBranch = (
  { width, hidden, bias, deviation }: FeedForwardOptions,
  activation: (x: Tensor) => Tensor = (x) => gelu(x),
  keys: Readonly<Record<"up" | "down", number>> = { up: 1, down: 2 },
): Branch<FeedForwardParams> => ({
  name: "feed-forward",
  init: (key) => ({
    up: initProjection(foldIn(key, keys.up), [width, hidden], { bias }),
    down: initProjection(foldIn(key, keys.down), [hidden, width], { bias, deviation }),
  }),
  apply: ({ up, down }, x_BTD) => [project(down, activation(project(up, x_BTD)))],
});

/** Returns a SwiGLU feed-forward branch: `(silu(x G) · x U) V`. Source: Shazeer 2020, arXiv 2002.05202. */
export const gatedFeedForwardBranch = (
  { width, hidden, bias, deviation }: FeedForwardOptions,
  keys: Readonly<Record<"gate" | "up" | "down", number>> = { gate: 1, up: 2, down: 3 },
): Branch<GatedFeedForwardParams> => ({
  name: "feed-forward",
  init: (key) => ({
    gate: initProjection(foldIn(key, keys.gate), [width, hidden], { bias }),
    up: initProjection(foldIn(key, keys.up), [width, hidden], { bias }),
    down: initProjection(foldIn(key, keys.down), [hidden, width], { bias, deviation }),
  }),
  apply: ({ gate, up, down }, x_BTD) => [project(down, multiply(silu(project(gate, x_BTD)), project(up, x_BTD)))],
});
