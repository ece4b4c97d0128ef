import { rowMajorStrides, type KernelNode, type OperatorParams } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "../kernel.ts";
import { bindCopy, copyTable, planCopy, type StridedCopy } from "../strided-copy.ts";

const plans = ({ inputs, outputs: [y], params }: KernelNode<OperatorParams["concat"]>): StridedCopy[] => {
  const dim = params.dim;
  const strides = rowMajorStrides(y!.shape);
  let start = 0;
  return inputs.map((input) => {
    const offset = start * strides[dim]!;
    start += input.shape[dim]!;
    return planCopy(input.shape, input.dtype, { strides, offset }, {});
  });
};

/** Makes one strided copy per input. */
export const concatKernel: Kernel = kernelOf({
  op: "concat",
  constants: (node) => {
    const tables = plans(node).map(copyTable);
    const bytes = new Uint8Array(tables.reduce((sum, table) => sum + table.length, 0));
    tables.reduce((offset, table) => {
      bytes.set(table, offset);
      return offset + table.length;
    }, 0);
    return bytes;
  },
  bind: (node, _wasm, _memory, team) => {
    let offset = 0;
    const copies = plans(node).map((plan) => {
      const copy = { run: bindCopy(plan, team), offset, outputOffset: plan.outputOffset };
      offset += copyTable(plan).length;
      return copy;
    });
    return (inputs, outputs, _, constants) => {
      for (let i = 0; i < copies.length; i++) {
        const { run, offset, outputOffset } = copies[i]!;
        // The memory plan may have placed the operand directly in the output.
        if (inputs[i] !== outputs[0]! + outputOffset) run(outputs[0]!, inputs[i]!, constants + offset);
      }
    };
  },
});
