import { meshPartition } from "@skein/collectives";
import { type ArrayTree, type MapTree, NdArray, type Tensor } from "@skein/tensor-core";
import { runOnRanks } from "@skein/testing";

/** Sizes by name of the mesh axes whose product is the axis "expert", outermost axis first. */
export type Levels = Readonly<Record<string, number>>;

/** Returns mesh axes of the given sizes. */
export const levelsOf = (sizes: readonly number[]): Levels =>
  Object.fromEntries(sizes.map((size, i) => [`level-${i}`, size]));

/**
 * Runs a traced function on all ranks on the reference backend, each rank with its own arguments. A single rank has no
 * axis.
 *
 * @param levels additional axes of the same ranks. @param whole axis of all ranks.
 */
export const runRanks = <Args extends readonly unknown[], Result>(
  fn: (...args: Args) => Result,
  ranks: readonly { [K in keyof Args]: ArrayTree<Args[K]> }[],
  levels: Levels = {},
  whole = "expert",
): MapTree<Result, Tensor, NdArray>[] => {
  const all = ranks.map((_, rank) => rank);
  const groupsOf = (rank: number): Record<string, readonly number[]> =>
    Object.fromEntries(
      Object.keys(levels).map((axis) => [axis, meshPartition(levels, axis).find((group) => group.includes(rank))!]),
    );
  return runOnRanks(fn, ranks, {
    mesh: { [whole]: ranks.length, ...levels },
    groupsOf: (rank) => ({ [whole]: all, ...groupsOf(rank) }),
  });
};

/** Splits an array into `count` equal parts along dimension 0. */
export const partsOf = (array: NdArray, count: number): NdArray[] => {
  const numbers = array.toNumbers();
  const each = numbers.length / count;
  return Array.from({ length: count }, (_, part) =>
    NdArray.from(
      numbers.slice(part * each, (part + 1) * each),
      [array.shape[0]! / count, ...array.shape.slice(1)],
      array.dtype,
    ),
  );
};

/** Concatenates arrays along dimension 0. */
export const joined = (arrays: readonly NdArray[]): NdArray =>
  NdArray.from(
    arrays.flatMap((array) => array.toNumbers()),
    [arrays.reduce((rows, { shape }) => rows + shape[0]!, 0), ...arrays[0]!.shape.slice(1)],
    arrays[0]!.dtype,
  );
