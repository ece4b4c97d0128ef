import { byteLength, elementCount, type TensorSpec } from "@skein/tensor-core";
import type { KernelNode, OperatorName, OperatorParams } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "./kernel.ts";
import { partBegin } from "./team/team.ts";

/** Returns the number of rows (along the last dimension) of a value, and their length. */
export const rowsOf = ({ shape }: TensorSpec): { rows: number; width: number } => ({
  rows: elementCount(shape.slice(0, -1)),
  width: shape.at(-1)!,
});

/** Estimated nanoseconds per row element, in one thread. */
const elementNanoseconds = 0.5;

export interface RowKernelRule<Op extends OperatorName> {
  readonly op: Op;
  /**
   * Name of the WebAssembly export. The arguments of the export are the addresses of all outputs and inputs, the row
   * count and width of input 0, and `numbers`.
   */
  readonly name: string;
  readonly numbers?: (node: KernelNode<OperatorParams[Op]>) => readonly number[];
  /** Indices of inputs that all rows share, such as gamma. All other inputs have data for each row. Default: none. */
  readonly shared?: readonly number[];
}

/** Creates a kernel that computes each row of its first input independently. */
export const rowKernel = <Op extends OperatorName>({ op, name, numbers, shared = [] }: RowKernelRule<Op>): Kernel =>
  kernelOf<Op>({
    op,
    bind: (node, _, __, team) => {
      const run = team.indexOf(name);
      const { rows, width } = rowsOf(node.inputs[0]!);
      const fixed = numbers?.(node) ?? [];
      const bytesPerRow = (spec: TensorSpec): number => (rows === 0 ? 0 : byteLength(spec) / rows);
      const outputBytes = node.outputs.map(bytesPerRow);
      const inputBytes = node.inputs.map((spec, i) => (shared.includes(i) ? 0 : bytesPerRow(spec)));
      const parts = team.partsOf(rows * width * elementNanoseconds, rows);
      return (inputs, outputs) =>
        team.run(parts, (part, call) => {
          const first = partBegin(rows, part, parts);
          const args: number[] = [];
          for (let i = 0; i < outputs.length; i++) args.push(outputs[i]! + first * outputBytes[i]!);
          for (let i = 0; i < inputs.length; i++) args.push(inputs[i]! + first * inputBytes[i]!);
          call(run, ...args, partBegin(rows, part + 1, parts) - first, width, ...fixed);
        });
    },
  });
