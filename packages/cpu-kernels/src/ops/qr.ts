import { elementCount } from "@skein/tensor-core";
import { type Kernel, kernelOf } from "../kernel.ts";
import { reflectorScratchBytes } from "../reflector-scratch.ts";

/** Applies Householder reflections in blocks; see `assembly/qr.ts`. */
export const qrKernel: Kernel = kernelOf({
  op: "qr",
  // Scratch memory: two transposed matrices, signs, scratch of reflections.
  scratchBytes: ({ inputs: [a] }) => {
    const [rows, columns] = a!.shape.slice(-2) as [number, number];
    return 4 * columns * (2 * rows + 1) + reflectorScratchBytes(columns, rows);
  },
  bind: ({ inputs: [a] }, wasm) => {
    const [rows, columns] = a!.shape.slice(-2) as [number, number];
    const batch = elementCount(a!.shape.slice(0, -2));
    const run = wasm["qr"]!;
    return ([from], [q, r], scratch) => void run(from!, q!, r!, batch, rows, columns, scratch);
  },
});
