import { byteLength, elementCount } from "@skein/tensor-core";
import { rowMajorStrides, type KernelNode, type OperatorParams } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "../kernel.ts";
import { bindCopy, copyTable, fillPattern, planCopy, type StridedCopy } from "../strided-copy.ts";

const plan = ({ inputs: [x], outputs: [y], params }: KernelNode<OperatorParams["pad"]>): StridedCopy => {
  const own = rowMajorStrides(y!.shape);
  const gaps = params.interior;
  const offset = params.low.reduce((sum, low, dim) => sum + low * own[dim]!, 0);
  return planCopy(x!.shape, x!.dtype, { strides: own.map((stride, dim) => stride * (gaps[dim]! + 1)), offset }, {});
};

/** Fills the output with the padding value, then copies the input to its position. */
export const padKernel: Kernel = kernelOf({
  op: "pad",
  constants: (node) => copyTable(plan(node)),
  bind: (node, wasm, _memory, team) => {
    const [x, y] = [node.inputs[0]!, node.outputs[0]!];
    const copy = bindCopy(plan(node), team);
    const fillBytes = wasm["fillBytes"]!;
    const pattern = fillPattern(node.params.value, y.dtype);
    const bytes = elementCount(x.shape) === elementCount(y.shape) ? 0 : byteLength(y);
    return (inputs, outputs, _, constants) => {
      fillBytes(outputs[0]!, pattern, bytes);
      copy(outputs[0]!, inputs[0]!, constants);
    };
  },
});
