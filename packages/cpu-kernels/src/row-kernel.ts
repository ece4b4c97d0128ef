import { elementCount, type TensorSpec } from "@skein/tensor-core";
import type { KernelNode, OperatorName, OperatorParams } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "./kernel.ts";

/** How many rows (along the last dimension) a value has, and their length. */
export const rowsOf = ({ shape }: TensorSpec): { rows: number; width: number } => ({
  rows: elementCount(shape.slice(0, -1)),
  width: shape.at(-1)!,
});

export interface RowKernelRule<Op extends OperatorName> {
  readonly op: Op;
  /**
   * Name of the WebAssembly function: addresses of all outputs, then of all inputs, then rows and width of input 0,
   * then `numbers`, then scratch.
   */
  readonly name: string;
  readonly numbers?: (node: KernelNode<OperatorParams[Op]>) => readonly number[];
  /** Scratch in words per column; none by default, and then no scratch address is passed. */
  readonly scratchWords?: number;
}

/** A kernel over the rows of its first input. */
export const rowKernel = <Op extends OperatorName>({
  op,
  name,
  numbers,
  scratchWords = 0,
}: RowKernelRule<Op>): Kernel =>
  kernelOf<Op>({
    op,
    scratchBytes: ({ inputs: [x] }) => 4 * scratchWords * x!.shape.at(-1)!,
    bind: (node, wasm) => {
      const run = wasm[name]!;
      const { rows, width } = rowsOf(node.inputs[0]!);
      const fixed = [rows, width, ...(numbers?.(node) ?? [])];
      const last = scratchWords > 0 ? 1 : 0;
      const args = new Array<number>(node.outputs.length + node.inputs.length + fixed.length + last).fill(0);
      fixed.forEach((value, i) => {
        args[node.outputs.length + node.inputs.length + i] = value;
      });
      return (inputs, outputs, scratch) => {
        for (let i = 0; i < outputs.length; i++) args[i] = outputs[i]!;
        for (let i = 0; i < inputs.length; i++) args[outputs.length + i] = inputs[i]!;
        if (last === 1) args[args.length - 1] = scratch;
        run(...args);
      };
    },
  });
