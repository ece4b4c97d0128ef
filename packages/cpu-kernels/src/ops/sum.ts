import { type KernelNode, type ReductionStep, reductionSteps, type OperatorParams } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "../kernel.ts";
import { chainScratchBytes, chainSteps } from "../reduction-chain.ts";

/** Totals of column sums, see `assembly/sum.ts`. */
const totalBytes = 12 * 1024;

const stepsOf = (node: KernelNode<OperatorParams["sum"]>): ReductionStep[] =>
  reductionSteps(node.inputs[0]!.shape, node.params.dims);

export const sumKernel: Kernel = kernelOf({
  op: "sum",
  scratchBytes: (node) => totalBytes + chainScratchBytes(node, stepsOf(node)),
  bind: (node, wasm) => {
    const float = node.inputs[0]!.dtype === "f32";
    const sum = wasm[float ? "sumF32" : "sumI32"]!;
    let totals = 0;
    const chain = chainSteps(
      node,
      stepsOf(node),
      (input, output, { outer, size, inner }) => void sum(input, output, outer, size, inner, totals),
    );
    return (inputs, outputs, scratch) => {
      totals = scratch;
      chain(inputs[0]!, outputs[0]!, scratch + totalBytes);
    };
  },
});
