import { elementCount, type KernelNode, type OperatorParams } from "@skein/tensor-core";
import { type Kernel, kernelOf } from "../kernel.ts";

/** Must cover what `assembly/top-k.ts` lays out: a list of 32 pairs, or a histogram and the larger of candidates and sort buffers. */
const scratchBytesOf = ({ inputs, params }: KernelNode<OperatorParams["top-k"]>): number => {
  const n = inputs[0]!.shape.at(-1)!;
  const k = params.k;
  const thins = n >= 16384 && k <= Math.floor(n / 8);
  return 8192 + Math.max(thins ? 16 * Math.max(2 * k, 2048) : 0, 8 * k);
};

/** `Order` of `assembly/order.ts`. */
const orders = { value: 0, signed: 1, unsigned: 2, magnitude: 4 } as const;

export const topKKernel: Kernel = kernelOf({
  op: "top-k",
  scratchBytes: scratchBytesOf,
  bind: (node, wasm) => {
    const topK = wasm["topK"]!;
    const { dtype, shape } = node.inputs[0]!;
    const rows = elementCount(shape.slice(0, -1));
    const n = shape.at(-1)!;
    const { k, sorted, by } = node.params;
    const kind = dtype === "f32" ? orders[by] : dtype === "i32" ? orders.signed : orders.unsigned;
    return (inputs, outputs, scratch) => void topK(inputs[0]!, outputs[0]!, outputs[1]!, rows, n, k, sorted ? 1 : 0, kind, scratch);
  },
});
