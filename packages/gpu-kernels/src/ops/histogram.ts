import { elementCount } from "@skein/tensor-core";
import { type Kernel, kernelOf } from "../kernel.ts";
import { histogramPasses } from "../kernels/histogram/histogram.ts";
import { ScratchBlocks } from "../kernels/scratch-blocks.ts";

export const histogramKernel: Kernel = kernelOf({
  op: "histogram",
  plan: ({ inputs: [x], params }, facts) => {
    const blocks = new ScratchBlocks();
    const passes = histogramPasses(elementCount(x!.shape), params.bins, blocks, facts);
    return { scratch: blocks.bytes, passes };
  },
});
