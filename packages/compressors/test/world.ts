import {
  type ArrayTree,
  flattenTree,
  type MapTree,
  type Mesh,
  NdArray,
  type Tensor,
  trace,
  type TensorSpec,
  unflattenTree,
} from "@skein/tensor-core";
import { interpretWorld, operators, type OperatorTable, type ReferenceArray } from "@skein/tensor-core/backend";

/**
 * Additional mesh axes of a world: the size of each axis, and the groups of ranks along the axis. The axis "data"
 * always contains all ranks.
 */
export interface Axes {
  readonly mesh: Mesh;
  readonly groups: { readonly [axis: string]: readonly (readonly number[])[] };
}

export const toReference = (array: NdArray): ReferenceArray => ({
  spec: { dtype: array.dtype, shape: array.shape },
  data: Float64Array.from(array.toNumbers()),
});
const fromReference = ({ spec, data }: ReferenceArray): NdArray => NdArray.from(data, spec.shape, spec.dtype);

export const meshOf = (numRanks: number, axes?: Axes): Mesh => ({ data: numRanks, ...axes?.mesh });

/** Returns the groups of an axis, for `interpretWorld`. */
export const groupsOf = (numRanks: number, axes?: Axes): ((axis: string) => readonly (readonly number[])[]) => {
  const all = [Array.from({ length: numRanks }, (_, rank) => rank)];
  return (axis) => axes?.groups[axis] ?? all;
};

/**
 * Runs a traced function on all ranks of the axis "data", in lockstep on the reference backend. Each rank has separate
 * arguments.
 */
export const runWorld = <Args extends readonly unknown[], Result>(
  fn: (...args: Args) => Result,
  ranks: readonly { [K in keyof Args]: ArrayTree<Args[K]> }[],
  axes?: Axes,
  table: OperatorTable = operators,
): MapTree<Result, Tensor, NdArray>[] => {
  const { graph, outputs } = trace(fn, ranks[0]! as never, { mesh: meshOf(ranks.length, axes) });
  const inputs = ranks.map((args) => flattenTree<NdArray>(args).leaves.map(toReference));
  return interpretWorld(graph, inputs, groupsOf(ranks.length, axes), table).map((results) =>
    unflattenTree(outputs, results.map(fromReference)),
  );
};

/**
 * Rounds arrays to f32 in place. The rounding is safe, because an operator returns new arrays or an operand that is
 * already rounded.
 */
const rounded = (data: readonly Float64Array[], outputs: readonly TensorSpec[]): readonly Float64Array[] => {
  data.forEach((values, output) => {
    if (outputs[output]!.dtype === "f32") for (let i = 0; i < values.length; i++) values[i] = Math.fround(values[i]!);
  });
  return data;
};

/** Operators of the reference backend that round each result to f32 like a device, including overflow to infinity. */
export const singlePrecision: OperatorTable = Object.fromEntries(
  Object.entries(operators).map(([name, operator]) => [
    name,
    {
      ...operator,
      reference: (inputs, params, outputs) => [...rounded(operator.reference(inputs, params, outputs), outputs)],
      ...(operator.collective && {
        collective: (ranks, params, outputs) =>
          operator.collective!(ranks, params, outputs).map((own) => [...rounded(own, outputs)]),
      }),
    } satisfies OperatorTable[string],
  ]),
);
