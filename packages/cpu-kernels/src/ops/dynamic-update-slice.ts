import { byteLength, bytesPerElement, elementCount } from "@skein/tensor-core";
import { type KernelNode, rowMajorStrides, windowOffset } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "../kernel.ts";
import { integersAt } from "../run-time-integers.ts";
import { bindCopy, copyTable, planCopy, type StridedCopy } from "../strided-copy.ts";

const plan = ({ inputs: [x, update] }: Pick<KernelNode, "inputs">): StridedCopy =>
  planCopy(update!.shape, update!.dtype, { strides: rowMajorStrides(x!.shape) }, {});

/**
 * Copies the base unless the plan shares its memory with the output, then copies the update to an address that depends
 * on the run-time starts.
 */
export const dynamicUpdateSliceKernel: Kernel = kernelOf({
  op: "dynamic-update-slice",
  constants: (node) => copyTable(plan(node)),
  bind: (node, wasm, memory, team) => {
    const [x, update] = node.inputs;
    const { dtype, shape } = x!;
    const sizes = update!.shape;
    const bytes = byteLength(x!);
    const copyDense = wasm["copyDense"]!;
    const copy = elementCount(sizes) === 0 ? () => {} : bindCopy(plan(node), team);
    const integers = integersAt(memory);
    return (inputs, [y], _, constants) => {
      if (inputs[0] !== y) copyDense(y!, inputs[0]!, bytes);
      const offset = windowOffset(shape, sizes, integers(inputs[2]!, shape.length));
      copy(y! + offset * bytesPerElement[dtype], inputs[1]!, constants);
    };
  },
});
