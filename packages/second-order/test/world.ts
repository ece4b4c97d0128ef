import {
  type ArrayTree,
  flattenTree,
  type MapTree,
  NdArray,
  type Tensor,
  trace,
  unflattenTree,
} from "@skein/tensor-core";
import { interpretRanks, type ReferenceArray } from "@skein/tensor-core/backend";

const toReference = (array: NdArray): ReferenceArray => ({
  spec: { dtype: array.dtype, shape: array.shape },
  data: Float64Array.from(array.toNumbers()),
});

const fromReference = ({ spec, data }: ReferenceArray): NdArray => NdArray.from(data, spec.shape, spec.dtype);

/** Axes of a grid of ranks: along `workers` lie those of a column, along `receivers` those of a row. */
export const gridAxes = { workers: "workers", receivers: "receivers" } as const;

/**
 * Run a traced function on all ranks of the axis "data", traced for each rank apart, each with its own arguments, on
 * the reference.
 *
 * @param rows of a grid of the ranks, row by row.
 */
export const runRanks = <Args extends readonly unknown[], Result>(
  fn: (...args: Args) => Result,
  ranks: readonly { [K in keyof Args]: ArrayTree<Args[K]> }[],
  rows = 1,
): MapTree<Result, Tensor, NdArray>[] => {
  const columns = ranks.length / rows;
  const all = ranks.map((_, rank) => rank);
  const traced = ranks.map((args, rank) =>
    trace(fn, args as never, {
      mesh: { data: ranks.length, [gridAxes.workers]: rows, [gridAxes.receivers]: columns },
      place: {
        data: rank,
        [gridAxes.workers]: Math.floor(rank / columns),
        [gridAxes.receivers]: rank % columns,
      },
    }),
  );
  const inputs = ranks.map((args) => flattenTree<NdArray>(args).leaves.map(toReference));
  const axes = all.map((rank) => ({
    data: all,
    [gridAxes.workers]: all.filter((other) => other % columns === rank % columns),
    [gridAxes.receivers]: all.filter((other) => Math.floor(other / columns) === Math.floor(rank / columns)),
  }));
  return interpretRanks(
    traced.map(({ graph }) => graph),
    inputs,
    axes,
  ).map((results, rank) => unflattenTree(traced[rank]!.outputs, results.map(fromReference)));
};

/** `count` parts of a tree of arrays, cut along dimension 0. */
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
