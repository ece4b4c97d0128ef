import { fusedProgram } from "../fused-program.ts";
import { type Kernel, kernelOf } from "../kernel.ts";

/**
 * Every elementwise operator: a small program, run tile by tile so that intermediates stay in the first-level cache.
 */
export const fusedKernel: Kernel = kernelOf({
  op: "fused",
  scratchBytes: (node) => fusedProgram(node).scratchBytes,
  constants: (node) => new Uint8Array(fusedProgram(node).words.buffer),
  bind: (node, wasm) => {
    const setWords = wasm["setWords"]!;
    const fused = wasm["fused"]!;
    const numInputs = node.inputs.length;
    const numOperands = numInputs + node.outputs.length;
    return (inputs, outputs, scratch, constants) => {
      const operand = (i: number): number =>
        i < numInputs ? inputs[i]! : i < numOperands ? outputs[i - numInputs]! : 0;
      for (let i = 0; i < numOperands; i += 4)
        setWords(scratch + 4 * i, operand(i), operand(i + 1), operand(i + 2), operand(i + 3));
      fused(constants, scratch);
    };
  },
});
