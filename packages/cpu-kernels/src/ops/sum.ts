import { type KernelNode, type ReductionStep, reductionSteps } from "@skein/tensor-core";
import type { Kernel } from "../kernel.ts";
import { chainScratchBytes, chainSteps } from "../reduction-chain.ts";

/** Totals of column sums, see `assembly/sum.ts`. */
const totalBytes = 12 * 1024;

const stepsOf = (node: KernelNode): ReductionStep[] => reductionSteps(node.inputs[0]!.shape, node.params["dims"] as number[]);

export const sumKernel: Kernel = {
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
};
