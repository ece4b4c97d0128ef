import { bytesPerElement } from "@skein/tensor-core";
import { rowMajorStrides } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "../kernel.ts";
import { hasBlocks, transposeBlocksPass } from "../kernels/movement/transpose-blocks.ts";
import { transposeTilesPass } from "../kernels/movement/transpose-tiles.ts";
import { transpositionOf } from "../kernels/movement/transposition.ts";
import { viewCopyPass, type View } from "../kernels/movement/view-copy.ts";

/**
 * Copies contiguous runs if the last dimension stays last. Other transpositions use tiles, or blocks if tiles are slow.
 */
export const transposeKernel: Kernel = kernelOf({
  op: "transpose",
  plan: ({ inputs: [x], outputs: [y], params }, facts) => {
    const { dtype, shape } = y!;
    const strides = rowMajorStrides(x!.shape);
    const permutation = params.permutation;
    const view: View = { dims: permutation.map((dim, i) => ({ size: shape[i]!, stride: strides[dim]! })), offset: 0 };
    const transposition = transpositionOf(view, dtype);
    if (transposition === undefined) return { passes: [viewCopyPass(view, dtype, "transpose")] };
    const inBlocks = facts.software && hasBlocks(transposition, bytesPerElement[dtype]);
    return { passes: [inBlocks ? transposeBlocksPass(transposition) : transposeTilesPass(transposition, dtype)] };
  },
});
