import { type Kernel, kernelOf } from "../kernel.ts";
import { compactPasses } from "../kernels/bits/compact.ts";
import { ScratchBlocks } from "../kernels/scratch-blocks.ts";

export const compactKernel: Kernel = kernelOf({
  op: "compact",
  plan: ({ inputs: [x], params }, facts) => {
    const blocks = new ScratchBlocks();
    const passes = compactPasses(x!.shape[0]!, params.capacity, blocks, facts);
    return { scratch: blocks.bytes, passes };
  },
});
