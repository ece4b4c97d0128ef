import { elementCount } from "@skein/tensor-core";
import { type Kernel, kernelOf } from "../kernel.ts";
import { partBegin } from "../team/team.ts";

/** Estimated nanoseconds per random word, in one thread. */
const wordNanoseconds = 1;
/** Number of random words per counter, which are computed together. */
const counterWords = 2;

export const randomBitsKernel: Kernel = kernelOf({
  op: "random-bits",
  scratchBytes: () => 8,
  bind: (node, _, __, team) => {
    const randomBits = team.indexOf("randomBits");
    const count = elementCount(node.outputs[0]!.shape);
    const counters = Math.ceil(count / counterWords);
    const parts = team.partsOf(count * wordNanoseconds, counters);
    const begin = (part: number): number => Math.min(count, counterWords * partBegin(counters, part, parts));
    // Only the last part uses the scratch memory.
    return (inputs, outputs, scratch) =>
      team.run(parts, (part, call) => call(randomBits, inputs[0]!, outputs[0]!, begin(part), begin(part + 1), scratch));
  },
});
