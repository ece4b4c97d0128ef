import { bytesPerElement } from "@skein/tensor-core";
import { type KernelNode, rowMajorStrides, windowOffset } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "../kernel.ts";
import { integersAt } from "../run-time-integers.ts";
import { bindCopy, copyTable, planCopy, type StridedCopy } from "../strided-copy.ts";

const plan = ({ inputs: [x], outputs: [y] }: Pick<KernelNode, "inputs" | "outputs">): StridedCopy =>
  planCopy(y!.shape, y!.dtype, {}, { strides: rowMajorStrides(x!.shape) });

/** Makes a strided copy of a slice, from an address that depends on the run-time starts. */
export const dynamicSliceKernel: Kernel = kernelOf({
  op: "dynamic-slice",
  constants: (node) => copyTable(plan(node)),
  bind: (node, _, memory, team) => {
    const { dtype, shape } = node.inputs[0]!;
    const { sizes } = node.params;
    const copy = bindCopy(plan(node), team);
    const integers = integersAt(memory);
    return ([x, starts], [y], _, constants) => {
      const offset = windowOffset(shape, sizes, integers(starts!, shape.length));
      copy(y!, x! + offset * bytesPerElement[dtype], constants);
    };
  },
});
