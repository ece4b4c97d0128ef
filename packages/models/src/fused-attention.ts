// Shapes: B batch, T positions, D width.
import { foldIn, split, type Tensor } from "@skein/tensor-core";
import { attendHeads, type AttentionOptions } from "./attention-layer.ts";
import { initProjection, type Projection, project } from "./projection.ts";
import type { Branch } from "./transformer-block.ts";

/** Parameters of attention with one input matrix for query, key and value: input [D, 3D], output [D, D]. */
export interface FusedAttentionParams {
  readonly input: Projection;
  readonly output: Projection;
}

/** Returns a self-attention branch with one matrix product for query, key and value, with biases. */
export const fusedAttentionBranch = (
  options: Pick<AttentionOptions, "width" | "numHeads" | "deviation" | "causal">,
): Branch<FusedAttentionParams> => ({
  name: "attention",
  init: (key) => {
    const { width, deviation } = options;
    return {
      input: initProjection(foldIn(key, 0), [width, 3 * width], { bias: true }),
      output: initProjection(foldIn(key, 1), [width, width], { bias: true, deviation }),
    };
  },
  apply: ({ input, output }, x_BTD, context) => {
    const inputs = split(project(input, x_BTD), 3, { dim: -1 }) as [Tensor, Tensor, Tensor];
    return [project(output, attendHeads(options, inputs, context))];
  },
});
