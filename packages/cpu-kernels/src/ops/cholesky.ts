import { elementCount } from "@skein/tensor-core";
import type { KernelNode } from "@skein/tensor-core/backend";
import { TRIANGLE_BLOCK } from "../../assembly/decomposition-blocks.ts";
import { productScratchBytes } from "../contraction-scratch.ts";
import { type Kernel, kernelOf } from "../kernel.ts";

const sizeOf = (node: KernelNode): number => node.inputs[0]!.shape.at(-1)!;

/** Computes Cholesky factors block by block; see `assembly/decomposition.ts`. */
export const choleskyKernel: Kernel = kernelOf({
  op: "cholesky",
  // Scratch memory: negated rows of a block, the block's transpose, and a product.
  scratchBytes: (node) => {
    const size = sizeOf(node);
    return 4 * TRIANGLE_BLOCK * (size + TRIANGLE_BLOCK) + productScratchBytes(size, TRIANGLE_BLOCK, size);
  },
  bind: (node, wasm) => {
    const size = sizeOf(node);
    const batch = elementCount(node.inputs[0]!.shape.slice(0, -2));
    const run = wasm["cholesky"]!;
    return ([a], [y], scratch) => void run(a!, y!, batch, size, scratch);
  },
});
