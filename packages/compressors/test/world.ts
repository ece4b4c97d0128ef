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
 * Further mesh axes of a world: how many ranks lie along each, and which form its groups. All ranks lie along "data".
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

/** For `interpretWorld`: the groups of an axis. */
export const groupsOf = (numRanks: number, axes?: Axes): ((axis: string) => readonly (readonly number[])[]) => {
  const all = [Array.from({ length: numRanks }, (_, rank) => rank)];
  return (axis) => axes?.groups[axis] ?? all;
};

/**
 * Run one traced function on all ranks of the axis "data", each with its own arguments, in lockstep on the reference.
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

/** In place: what an operator gives is its own, or an operand that was rounded when it was made. */
const rounded = (data: readonly Float64Array[], outputs: readonly TensorSpec[]): readonly Float64Array[] => {
  data.forEach((values, output) => {
    if (outputs[output]!.dtype === "f32") for (let i = 0; i < values.length; i++) values[i] = Math.fround(values[i]!);
  });
  return data;
};

/**
 * The operators of the reference, each rounding what it gives to f32, as a device does: sums that a device rounds, and
 * overflow where it overflows.
 */
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
