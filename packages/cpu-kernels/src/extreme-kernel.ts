import { bytesPerElement, type DType } from "@skein/tensor-core";
import { type KernelNode, type OperatorParams, type ReductionStep, reductionSteps } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "./kernel.ts";
import { chainScratchBytes, chainSteps } from "./reduction-chain.ts";
import { partBegin } from "./team/team.ts";

/** Estimated nanoseconds per reduced element, in one thread. */
const elementNanoseconds = 0.15;

const suffixes: { readonly [dtype in DType]?: string } = { f32: "F32", i32: "I32", u32: "U32" };

const stepsOf = (node: KernelNode<OperatorParams["reduce-max"]>): ReductionStep[] =>
  reductionSteps(node.inputs[0]!.shape, node.params.dims);

/** Creates the kernel of `reduce-max` or `reduce-min`. */
export const extremeKernel = (which: "max" | "min"): Kernel =>
  kernelOf<"reduce-max" | "reduce-min">({
    op: `reduce-${which}`,
    scratchBytes: (node) => chainScratchBytes(node, stepsOf(node)),
    bind: (node, _, __, team) => {
      const { dtype } = node.inputs[0]!;
      const suffix = suffixes[dtype];
      const fold = team.indexOf(suffix === undefined ? "extremeU8" : `${which}${suffix}`);
      const bytes = bytesPerElement[dtype];
      // These arguments are for byte reductions only: the direction, and the result of an empty reduction.
      const greatest = which === "max" ? 1 : 0;
      const empty = which === "max" ? 0 : dtype === "bool" ? 1 : 255;
      const chain = chainSteps(node, stepsOf(node), (input, output, { outer, size, inner }) => {
        const parts = team.partsOf(outer * size * inner * elementNanoseconds, outer);
        team.run(parts, (part, call) => {
          const first = partBegin(outer, part, parts);
          const count = partBegin(outer, part + 1, parts) - first;
          const [from, to] = [input + bytes * first * size * inner, output + bytes * first * inner];
          call(fold, from, to, count, size, inner, greatest, empty);
        });
      });
      return (inputs, outputs, scratch) => chain(inputs[0]!, outputs[0]!, scratch);
    },
  });
