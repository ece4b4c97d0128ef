import { elementCount } from "@skein/tensor-core";
import type { KernelNode, OperatorParams } from "@skein/tensor-core/backend";
import { AIM_TIMES, BINS, LEAST_AIM, LIST, LONG, ROOM_TIMES, SMALL_PART } from "../../assembly/top-k-blocks.ts";
import { type Kernel, kernelOf } from "../kernel.ts";

/**
 * Returns the scratch bytes of top-k: enough for the sorted list of small k, and for radix selection, which needs a
 * histogram and pairs of value and position. The pairs are the candidates of a filtered row, or the items of the sort.
 */
const scratchBytesOf = ({ inputs, params }: KernelNode<OperatorParams["top-k"]>): number => {
  const n = inputs[0]!.shape.at(-1)!;
  const k = params.k;
  const thins = n >= LONG && k <= Math.floor(n / SMALL_PART);
  const candidates = thins ? ROOM_TIMES * Math.max(AIM_TIMES * k, LEAST_AIM) : 0;
  return Math.max(8 * LIST, 4 * BINS + 8 * Math.max(candidates, k));
};

/** Element orders of top-k, as values of `Order` in `assembly/order.ts`. */
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
    return (inputs, outputs, scratch) =>
      void topK(inputs[0]!, outputs[0]!, outputs[1]!, rows, n, k, sorted ? 1 : 0, kind, scratch);
  },
});
