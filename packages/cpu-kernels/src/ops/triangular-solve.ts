import { elementCount } from "@skein/tensor-core";
import { TRIANGLE_BLOCK } from "../../assembly/decomposition-blocks.ts";
import { productScratchBytes } from "../contraction-scratch.ts";
import { type Kernel, kernelOf } from "../kernel.ts";

/** Solves triangular systems block by block; see `assembly/decomposition.ts`. */
export const triangularSolveKernel: Kernel = kernelOf({
  op: "triangular-solve",
  // Scratch memory: negated rows of a block, and a product.
  scratchBytes: ({ inputs: [, b] }) => {
    const [rows, columns] = b!.shape.slice(-2) as [number, number];
    return 4 * TRIANGLE_BLOCK * rows + productScratchBytes(TRIANGLE_BLOCK, columns, rows);
  },
  bind: ({ inputs: [, b], params }, wasm) => {
    const [rows, columns] = b!.shape.slice(-2) as [number, number];
    const batch = elementCount(b!.shape.slice(0, -2));
    const flags = [params.lower, params.transpose, params.unitDiagonal].map(Number);
    const run = wasm["triangularSolve"]!;
    return ([l, right], [x], scratch) => void run(l!, right!, x!, batch, rows, columns, ...flags, scratch);
  },
});
