import { bytesPerElement, type DType, roundToStorage } from "../dtype.ts";
import { InvariantError } from "../errors.ts";
import type { Params } from "../graph/graph.ts";
import type { KernelNode } from "../graph/kernel-node.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount, rowMajorStrides, type TensorSpec } from "../shape.ts";

export const fusedName = "fused";

/** Instruction of a `fused` node: one elementwise operator. `constant` has no arguments. */
export type FusedInstruction = {
  readonly op: string;
  readonly args: readonly number[];
  readonly dtype: DType;
  readonly params: Params;
};

/** Operators that can reduce a result inside a `fused` node, so that the unreduced result is not written to memory. */
export type FoldOp = "pack-bits" | "reduce-max" | "reduce-min" | "sum";

/**
 * Reduction of each group of `size` adjacent elements, in row-major order, to one element; for `pack-bits`, to
 * ⌈size/32⌉ words.
 */
export type FusedFold = { readonly op: FoldOp; readonly size: number };

/**
 * Elementwise program of a `fused` node. Registers 0 … inputs-1 contain the loaded inputs; register inputs+j contains
 * the result of instruction j. Output i is register `results[i]`, dense with shape `shape`, or the reduction of this
 * register by `folds[i]`. A view has the strides of an input in elements, one per dimension of `shape`; 0 along
 * broadcast dimensions.
 */
export type FusedParams = {
  readonly shape: readonly number[];
  readonly views: readonly { readonly strides: readonly number[] }[];
  readonly instructions: readonly FusedInstruction[];
  readonly results: readonly number[];
  /**
   * Reduction of each result, in the order of `results`; null if the result is not reduced. Absent: no result is
   * reduced.
   */
  readonly folds?: readonly (FusedFold | null)[];
};

/**
 * Computes the tile size of a kernel with fused reductions (folds): the largest suitable number of elements, at most
 * `most`. A tile must contain whole rows of each fold, or whole blocks of a row if rows are longer than `most`.
 * Undefined if no number is suitable, or if two folds have rows of different lengths above `most`.
 *
 * A block is the unit of a fold: 512 terms of a sum, 32 bits of `pack-bits`, 4 lanes of a maximum or minimum.
 * Therefore, a sum that is folded tile by tile is added in the same order as a separate sum node, and is bitwise
 * identical.
 */
export const foldTile = (folds: readonly FusedFold[], most: number): number | undefined => {
  const rows = new Set(folds.map(({ size }) => size));
  const long = [...rows].filter((size) => size > most);
  if (long.length > 1) return undefined;
  const units = [
    ...[...rows].filter((size) => size <= most),
    ...folds.map(({ op, size }) => (size <= most ? 1 : op === "sum" ? 512 : op === "pack-bits" ? 32 : 4)),
  ];
  const unit = units.reduce(leastCommonMultiple, 1);
  return unit <= most ? Math.floor(most / unit) * unit : undefined;
};

const leastCommonMultiple = (a: number, b: number): number => {
  let [x, y] = [a, b];
  while (y !== 0) [x, y] = [y, x % y];
  return (a / x) * b;
};

const foldedSpec = (dtype: DType, count: number, { op, size }: FusedFold): TensorSpec => {
  const rows = count / size;
  return op === "pack-bits" ? { dtype: "u32", shape: [rows, Math.ceil(size / 32)] } : { dtype, shape: [rows] };
};

/** Returns the index of the last instruction that reads an input; −1 if no instruction reads the input. */
const lastInstruction = ({ instructions }: FusedParams, input: number): number =>
  instructions.findLastIndex(({ args }) => args.includes(input));

const isFolded = ({ results, folds = [] }: FusedParams, input: number): boolean =>
  folds.some((fold, i) => fold !== null && results[i] === input);

/**
 * Whether a result may overwrite an input: the input has the same size, is read densely, and is last read before the
 * result is written. A kernel may then read operands in place and write results immediately.
 */
const mayOverwrite = ({ inputs, outputs, params }: KernelNode<FusedParams>, input: number, output: number): boolean => {
  const { shape, views, folds, results } = params;
  const [from, to] = [inputs[input]!, outputs[output]!];
  const dense = rowMajorStrides(shape);
  return (
    (folds?.[output] ?? null) === null &&
    bytesPerElement[from.dtype] === bytesPerElement[to.dtype] &&
    elementCount(from.shape) === elementCount(to.shape) &&
    views[input]!.strides.every((stride, dim) => shape[dim] === 1 || stride === dense[dim]) &&
    // Folds run after all instructions.
    !isFolded(params, input) &&
    lastInstruction(params, input) <= results[output]! - views.length
  );
};

/**
 * Creates the `fused` operator, which runs many elementwise operators in one pass over memory. The fusion pass creates
 * fused nodes after differentiation. Backends have one kernel for all programs.
 *
 * @param rows Operators that a program may contain: elementwise operators with a `scalar` function, and the operators
 * that folds use.
 */
export const fusedOperator = (rows: readonly Operator[]): Operator => {
  const table = new Map(rows.filter((row) => row.scalar !== undefined).map((row) => [row.name, row]));
  const foldTable = new Map(rows.map((row) => [row.name, row]));
  const rowOf = (op: string): Operator => {
    const row = table.get(op);
    if (row === undefined) throw new InvariantError(`fused: "${op}" is not an elementwise operator`);
    return row;
  };
  return defineOperator<FusedParams>({
    name: fusedName,
    runsProgram: true,
    mayOverwrite,
    lastRead: lastInstruction,
    infer: (inputs, { shape, instructions, results, folds }) => {
      const dtypes = [...inputs.map((input) => input.dtype), ...instructions.map((instruction) => instruction.dtype)];
      return results.map((register, i) => {
        const fold = folds?.[i] ?? undefined;
        return fold === undefined
          ? { dtype: dtypes[register]!, shape }
          : foldedSpec(dtypes[register]!, elementCount(shape), fold);
      });
    },
    cost: (inputs, outputs, { shape, instructions, folds = [] }) => {
      const spec = (dtype: DType): TensorSpec => ({ dtype, shape });
      const folded = folds.filter((fold) => fold !== null).length * elementCount(shape);
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
        flops: flops + folded,
        bytesRead: inputs.reduce((total, input) => total + byteLength(input), 0),
        bytesWritten: outputs.reduce((total, output) => total + byteLength(output), 0),
      };
    },
    reference: (inputs, { shape, views, instructions, results, folds }, outputs) => {
      const count = elementCount(shape);
      const steps = rowMajorStrides(shape);
      const dtypes = [
        ...inputs.map((input) => input.spec.dtype),
        ...instructions.map((instruction) => instruction.dtype),
      ];
      const registers = inputs.map(({ data }, input) =>
        Float64Array.from(
          { length: count },
          (_, flat) =>
            data[
              shape.reduce(
                (at, size, dim) => at + (Math.floor(flat / steps[dim]!) % size) * views[input]!.strides[dim]!,
                0,
              )
            ]!,
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
      return results.map((register, i) => {
        const data = registers[register]!.slice();
        const fold = folds?.[i] ?? undefined;
        if (fold === undefined) return data;
        const spec: TensorSpec = { dtype: dtypes[register]!, shape: [count / fold.size, fold.size] };
        const result = { dtype: outputs[i]!.dtype, shape: foldedSpec(spec.dtype, count, fold).shape };
        return foldTable
          .get(fold.op)!
          .reference([{ spec, data }], fold.op === "pack-bits" ? {} : { dims: [1] }, [result])[0]!;
      });
    },
  });
};
