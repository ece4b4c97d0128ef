import { elementCount, type KernelNode } from "@skein/tensor-core";
import type { Kernel } from "../kernel.ts";

const binsOf = ({ params }: KernelNode): number => params["bins"] as number;

/** Must cover what `assembly/histogram.ts` lays out: four counts for each bin, and for what lies outside. */
const scratchBytesOf = (node: KernelNode): number => 16 * (binsOf(node) + 1);

export const histogramKernel: Kernel = {
  op: "histogram",
  scratchBytes: scratchBytesOf,
  bind: (node, wasm) => {
    const histogram = wasm["histogram"]!;
    const n = elementCount(node.inputs[0]!.shape);
    const bins = binsOf(node);
    return (inputs, outputs, scratch) => void histogram(inputs[0]!, inputs[1]!, inputs[2]!, outputs[0]!, n, bins, scratch);
  },
};
