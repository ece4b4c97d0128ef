import type { DType } from "../../dtype.ts";
import { ArgumentError, InvariantError, ShapeError } from "../../errors.ts";
import type { CollectiveParams } from "../../graph/collective-params.ts";
import {
  type Cost,
  defineOperator,
  type Operator,
  type OperatorFacts,
  type ReferenceArray,
  type VjpContext,
} from "../../graph/operator.ts";
import type { Tensor } from "../../graph/tensor.ts";
import { byteLength, formatSpec, type TensorSpec } from "../../shape.ts";

export interface CollectiveRule<P extends CollectiveParams> extends OperatorFacts<P> {
  readonly name: string;
  /** Dtypes that the operator accepts. Absent: all dtypes. */
  readonly dtypes?: readonly DType[];
  readonly result: (input: TensorSpec, params: P) => TensorSpec;
  /** Returns the number of additions or comparisons per rank, for a bandwidth-optimal algorithm. */
  readonly flops?: (input: TensorSpec, params: P) => number;
  /**
   * Reference implementation: returns the results of all ranks, given their operands. `ranks` has `axisSize` entries.
   */
  readonly world: (ranks: readonly ReferenceArray[], params: P, output: TensorSpec) => Float64Array[];
  readonly vjp?: (context: VjpContext<P>) => (Tensor | undefined)[];
}

/** Dtypes that collectives can reduce. 16-bit floats are added in f32, and each sum is rounded. */
export const reducible: readonly DType[] = ["f32", "f16", "bf16", "i32", "u32"];

/** Creates a collective operator with one operand, computed jointly by all ranks of a mesh axis. */
export const collective = <P extends CollectiveParams>({
  dtypes,
  result,
  flops,
  world: referenceWorld,
  ...rule
}: CollectiveRule<P>): Operator => {
  const world = (
    ranks: readonly (readonly ReferenceArray[])[],
    params: P,
    outputs: readonly TensorSpec[],
  ): Float64Array[][] => {
    checkRanks(rule.name, ranks.length, params);
    const inputs = ranks.map(([input]) => input!);
    return referenceWorld(inputs, params, outputs[0]!).map((data) => [data]);
  };
  return defineOperator<P>({
    ...rule,
    infer: (inputs, params) => {
      if (inputs.length !== 1) throw new InvariantError(`${rule.name} takes 1 operand, got ${inputs.length}`);
      const input = inputs[0]!;
      if (dtypes !== undefined && !dtypes.includes(input.dtype)) {
        throw new ShapeError(
          rule.name,
          `dtype ${input.dtype} cannot be reduced, expected ${dtypes.join(", ")}; cast the operand first`,
        );
      }
      return [result(input, params)];
    },
    cost: ([input], [output], params): Cost => ({
      flops: flops?.(input!, params) ?? 0,
      bytesRead: byteLength(input!),
      bytesWritten: byteLength(output!),
    }),
    reference: (inputs, params, outputs) => world([inputs], params, outputs)[0]!,
    collective: world,
  });
};

/** Throws if the number of ranks differs from the axis size in the trace. */
export const checkRanks = (op: string, numRanks: number, { axis, axisSize }: CollectiveParams): void => {
  if (numRanks === axisSize) return;
  throw new ArgumentError(
    `${op}: the function was traced for ${axisSize} ranks on axis "${axis}" but runs on ${numRanks}; trace it with mesh { ${axis}: ${numRanks} }`,
  );
};

/** Returns the number of rows per chunk when dimension 0 is split into one chunk per rank. */
export const chunkRows = (op: string, input: TensorSpec, params: CollectiveParams): number => {
  const rows = leadingRows(op, input);
  if (rows % params.axisSize !== 0) {
    throw new ShapeError(
      op,
      `dimension 0 of ${formatSpec(input)} is not a multiple of the ${params.axisSize} ranks on axis "${params.axis}"; pad it to ${Math.ceil(rows / params.axisSize) * params.axisSize}`,
    );
  }
  return rows / params.axisSize;
};

/** Returns the size of dimension 0, along which data is split between ranks or gathered from ranks. */
export const leadingRows = (op: string, input: TensorSpec): number => {
  const rows = input.shape[0];
  if (rows === undefined)
    throw new ShapeError(op, `${formatSpec(input)} has no dimension 0 to split between ranks; reshape it to [1]`);
  return rows;
};

const combine: { readonly [reduction: string]: (a: number, b: number) => number } = {
  sum: (a, b) => a + b,
  max: Math.max,
  min: Math.min,
};

/** Reduces the elements `begin` to `end` − 1 over all ranks, in rank order. */
export const reduceRanks = (
  ranks: readonly ReferenceArray[],
  reduction: string,
  begin: number,
  end: number,
): Float64Array => {
  const apply = combine[reduction];
  if (apply === undefined)
    throw new InvariantError(`unknown reduction "${reduction}"; use one of ${Object.keys(combine).join(", ")}`);
  const [first, ...rest] = ranks.map((rank) => rank.data.subarray(begin, end));
  return first!.map((value, i) => rest.reduce((sum, data) => apply(sum, data[i]!), value));
};
