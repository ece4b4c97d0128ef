import { elementCount } from "@skein/tensor-core";
import type { KernelNode, OperatorParams } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "../kernel.ts";

const binsOf = ({ params }: KernelNode<OperatorParams["histogram"]>): number => params.bins;

/**
 * Returns the scratch bytes for the layout in `assembly/histogram.ts`: four counts per bin, and four counts for values
 * outside of the bins.
 */
const scratchBytesOf = (node: KernelNode<OperatorParams["histogram"]>): number => 16 * (binsOf(node) + 1);

export const histogramKernel: Kernel = kernelOf({
  op: "histogram",
  scratchBytes: scratchBytesOf,
  bind: (node, wasm) => {
    const histogram = wasm["histogram"]!;
    const n = elementCount(node.inputs[0]!.shape);
    const bins = binsOf(node);
    return (inputs, outputs, scratch) =>
      void histogram(inputs[0]!, inputs[1]!, inputs[2]!, outputs[0]!, n, bins, scratch);
  },
});
