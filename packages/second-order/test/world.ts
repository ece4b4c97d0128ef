import { type ArrayTree, flattenTree, type MapTree, NdArray, type Tensor, unflattenTree } from "@skein/tensor-core";
import { runOnRanks } from "@skein/testing";

/** Mesh axes of a grid of ranks. `workers`: axis along a column. `receivers`: axis along a row. */
export const gridAxes = { workers: "workers", receivers: "receivers" } as const;

/**
 * Runs a traced function on the reference backend, on all ranks of the axis "data". The function is traced separately
 * for each rank, and each rank has its own arguments.
 *
 * @param rows number of rows of a grid of the ranks, in row-major order.
 */
export const runRanks = <Args extends readonly unknown[], Result>(
  fn: (...args: Args) => Result,
  ranks: readonly { [K in keyof Args]: ArrayTree<Args[K]> }[],
  rows = 1,
): MapTree<Result, Tensor, NdArray>[] => {
  const columns = ranks.length / rows;
  const all = ranks.map((_, rank) => rank);
  return runOnRanks(fn, ranks, {
    mesh: { data: ranks.length, [gridAxes.workers]: rows, [gridAxes.receivers]: columns },
    placeOf: (rank) => ({
      data: rank,
      [gridAxes.workers]: Math.floor(rank / columns),
      [gridAxes.receivers]: rank % columns,
    }),
    groupsOf: (rank) => ({
      data: all,
      [gridAxes.workers]: all.filter((other) => other % columns === rank % columns),
      [gridAxes.receivers]: all.filter((other) => Math.floor(other / columns) === Math.floor(rank / columns)),
    }),
  });
};

/** Splits a tree of arrays into `count` equal parts along dimension 0. */
export const partsOf = <T>(tree: T, count: number): T[] => {
  const { leaves, structure } = flattenTree<NdArray>(tree);
  return Array.from({ length: count }, (_, part) =>
    unflattenTree<T>(
      structure,
      leaves.map((leaf) => {
        const rows = leaf.shape[0]! / count;
        const each = leaf.toNumbers().length / count;
        return NdArray.from(
          leaf.toNumbers().slice(part * each, (part + 1) * each),
          [rows, ...leaf.shape.slice(1)],
          leaf.dtype,
        );
      }),
    ),
  );
};
