import { elementCount } from "@skein/tensor-core";
import { ROTATION_LANES, ROTATION_LIST } from "../../assembly/decomposition-blocks.ts";
import { type Kernel, kernelOf } from "../kernel.ts";
import { reflectorScratchBytes } from "../reflector-scratch.ts";

/** Computes the tridiagonal form, then implicit QR steps; see `assembly/eigh.ts`. */
export const eighKernel: Kernel = kernelOf({
  op: "eigh",
  // Scratch memory: two diagonals in f64, two matrices with rows of complete panels, rotations, and the maximum of:
  // three rows, a second copy of the diagonals, and the scratch of reflections.
  scratchBytes: ({ inputs: [a] }) => {
    const size = a!.shape.at(-1)!;
    const row = 4 * Math.ceil(size / ROTATION_LANES) * ROTATION_LANES;
    const rotations = 8 * Math.max(ROTATION_LIST, size + 1);
    return 16 * size + 2 * size * row + rotations + Math.max(3 * row, 16 * size, reflectorScratchBytes(size, size));
  },
  bind: ({ inputs: [a] }, wasm) => {
    const size = a!.shape.at(-1)!;
    const batch = elementCount(a!.shape.slice(0, -2));
    const run = wasm["eigh"]!;
    return ([from], [values, vectors], scratch) => void run(from!, values!, vectors!, batch, size, scratch);
  },
});
