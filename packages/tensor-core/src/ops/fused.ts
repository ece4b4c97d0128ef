import { type DType, roundToStorage } from "../dtype.ts";
import { InvariantError } from "../errors.ts";
import type { Params } from "../graph/graph.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount, rowMajorStrides, type TensorSpec } from "../shape.ts";

/** One elementwise operator inside a `fused` node. `constant` takes no arguments. */
export type FusedInstruction = { readonly op: string; readonly args: readonly number[]; readonly dtype: DType; readonly params: Params };

/**
 * An elementwise program. Registers 0 … inputs-1 hold the loaded inputs, register inputs+j the result of instruction j; output i
 * is register `results[i]`, dense with `shape`. A view gives an input's stride in elements per dimension of `shape`, 0 where it is
 * stretched.
 */
export type FusedParams = {
  readonly shape: readonly number[];
  readonly views: readonly { readonly strides: readonly number[] }[];
  readonly instructions: readonly FusedInstruction[];
  readonly results: readonly number[];
};

/**
 * Many elementwise operators in one pass over memory. Made by the fusion pass after differentiation; backends have one kernel for all.
 *
 * @param rows the operators that may stand in a program: those with a `scalar` function.
 */
export const fusedOperator = (rows: readonly Operator[]): Operator => {
  const table = new Map(rows.filter((row) => row.scalar !== undefined).map((row) => [row.name, row]));
  const rowOf = (op: string): Operator => {
    const row = table.get(op);
    if (row === undefined) throw new InvariantError(`fused: "${op}" is not an elementwise operator`);
    return row;
  };
  return defineOperator<FusedParams>({
    name: "fused",
    infer: (inputs, { shape, instructions, results }) => {
      const dtypes = [...inputs.map((input) => input.dtype), ...instructions.map((instruction) => instruction.dtype)];
      return results.map((register) => ({ dtype: dtypes[register]!, shape }));
    },
    cost: (inputs, outputs, { shape, instructions }) => {
      const spec = (dtype: DType): TensorSpec => ({ dtype, shape });
      const flops = instructions
        .filter(({ op }) => op !== "constant")
        .reduce(
          (total, { op, args, dtype, params }) =>
            total +
            rowOf(op).cost(
              args.map(() => spec(dtype)),
              [spec(dtype)],
              params,
            ).flops,
          0,
        );
      return {
        flops,
        bytesRead: inputs.reduce((total, input) => total + byteLength(input), 0),
        bytesWritten: outputs.reduce((total, output) => total + byteLength(output), 0),
      };
    },
    reference: (inputs, { shape, views, instructions, results }) => {
      const count = elementCount(shape);
      const steps = rowMajorStrides(shape);
      const dtypes = [...inputs.map((input) => input.spec.dtype), ...instructions.map((instruction) => instruction.dtype)];
      const registers = inputs.map(({ data }, input) =>
        Float64Array.from(
          { length: count },
          (_, flat) =>
            data[shape.reduce((at, size, dim) => at + (Math.floor(flat / steps[dim]!) % size) * views[input]!.strides[dim]!, 0)]!,
        ),
      );
      for (const { op, args, dtype, params } of instructions) {
        if (op === "constant") {
          registers.push(new Float64Array(count).fill(roundToStorage(Number(params["value"]), dtype)));
          continue;
        }
        const scalar = rowOf(op).scalar!;
        const from = dtypes[args[0]!]!;
        registers.push(
          Float64Array.from({ length: count }, (_, i) =>
            roundToStorage(
              scalar(
                args.map((register) => registers[register]![i]!),
                params,
                from,
              ),
              dtype,
            ),
          ),
        );
      }
      return results.map((register) => registers[register]!.slice());
    },
  });
};
