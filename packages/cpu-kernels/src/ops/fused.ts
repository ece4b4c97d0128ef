import { elementCount } from "@skein/tensor-core";
import { alignUp } from "../arena.ts";
import { fusedProgram } from "../fused-program.ts";
import { type Kernel, kernelOf } from "../kernel.ts";

/** Estimated nanoseconds per element of each operand that is read from memory, in one thread. */
const memoryNanoseconds = 0.2;
const microNanoseconds = 0.1;

/**
 * Runs all elementwise operators as a small program, tile by tile, so that intermediates stay in the first-level cache.
 */
export const fusedKernel: Kernel = kernelOf({
  op: "fused",
  scratchBytes: (node, threads) => threads * alignUp(fusedProgram(node).scratchBytes),
  constants: (node) => new Uint8Array(fusedProgram(node).words.buffer),
  bind: (node, wasm, _, team) => {
    const setWords = wasm["setWords"]!;
    const fused = team.indexOf("fused");
    const { scratchBytes, units, micros } = fusedProgram(node);
    const bytesEach = alignUp(scratchBytes);
    const elements = elementCount(node.params.shape);
    const parts = team.partsOf(elements * (memoryNanoseconds * node.inputs.length + microNanoseconds * micros), units);
    const numInputs = node.inputs.length;
    const numOperands = numInputs + node.outputs.length;
    return (inputs, outputs, scratch, constants) => {
      const operand = (i: number): number =>
        i < numInputs ? inputs[i]! : i < numOperands ? outputs[i - numInputs]! : 0;
      for (let part = 0; part < parts; part++) {
        const at = scratch + part * bytesEach;
        for (let i = 0; i < numOperands; i += 4)
          setWords(at + 4 * i, operand(i), operand(i + 1), operand(i + 2), operand(i + 3));
      }
      team.run(parts, (part, call) => call(fused, constants, scratch + part * bytesEach, part, parts));
    };
  },
});
