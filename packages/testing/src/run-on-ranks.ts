import {
  type ArrayTree,
  flattenTree,
  type MapTree,
  type Mesh,
  type MeshCoordinates,
  NdArray,
  type Tensor,
  trace,
  unflattenTree,
} from "@skein/tensor-core";
import { interpretRanks, type ReferenceArray } from "@skein/tensor-core/backend";

export const toReference = (array: NdArray): ReferenceArray => ({
  spec: { dtype: array.dtype, shape: array.shape },
  data: Float64Array.from(array.toNumbers()),
});

/** Mesh of a test run, and the mesh coordinates and groups of each rank. */
export interface RankLayout {
  readonly mesh: Mesh;
  /**
   * Returns the mesh coordinates of a rank, for functions that depend on the coordinates. Default: one trace for all
   * ranks.
   */
  readonly placeOf?: (rank: number) => MeshCoordinates;
  /** Returns the ranks of a rank's group along each axis. */
  readonly groupsOf: (rank: number) => Readonly<Record<string, readonly number[]>>;
}

/**
 * Runs a function on all ranks with the reference backend. The function is traced separately for each rank, with
 * separate arguments.
 */
export const runOnRanks = <Args extends readonly unknown[], Result>(
  fn: (...args: Args) => Result,
  ranks: readonly { [K in keyof Args]: ArrayTree<Args[K]> }[],
  { mesh, placeOf, groupsOf }: RankLayout,
): MapTree<Result, Tensor, NdArray>[] => {
  const traced = ranks.map((args, rank) =>
    trace(fn, args as never, { mesh, ...(placeOf !== undefined && { place: placeOf(rank) }) }),
  );
  return interpretRanks(
    traced.map(({ graph }) => graph),
    ranks.map((args) => flattenTree<NdArray>(args).leaves.map(toReference)),
    ranks.map((_, rank) => groupsOf(rank)),
  ).map((results, rank) =>
    unflattenTree(
      traced[rank]!.outputs,
      results.map(({ spec, data }) => NdArray.from(data, spec.shape, spec.dtype)),
    ),
  );
};
