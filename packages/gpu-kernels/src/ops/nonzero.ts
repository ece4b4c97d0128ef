import { type Kernel, kernelOf } from "../kernel.ts";
import { nonzeroPasses } from "../kernels/bits/nonzero.ts";
import { ScratchBlocks } from "../kernels/scratch-blocks.ts";

export const nonzeroKernel: Kernel = kernelOf({
  op: "nonzero",
  plan: ({ inputs: [mask], params }) => {
    const blocks = new ScratchBlocks();
    const passes = nonzeroPasses(mask!.shape[0]!, params.capacity, blocks);
    return { scratch: blocks.bytes, passes };
  },
});
