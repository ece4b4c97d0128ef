import { flattenTree, leafPaths, NdArray, unflattenTree } from "@skein/tensor-core";
import { leavesByPath } from "@skein/tensor-core/backend";
import type { AnyModel } from "../task/task.ts";

/** What a run has learned, whole. */
export interface LearntWeights {
  readonly params: unknown;
  /** What the model moves itself. */
  readonly state: unknown;
}

const mapLeaves = (tree: unknown, fn: (leaf: NdArray, path: string) => NdArray): unknown => {
  const { leaves, structure } = flattenTree<NdArray>(tree);
  const paths = leafPaths(tree);
  return unflattenTree(
    structure,
    leaves.map((leaf, i) => fn(leaf, paths[i]!)),
  );
};

/** The rows of an array in another order: row i is row `order[i]` of the array. */
const withRows = (array: NdArray, order: readonly number[]): NdArray => {
  const rowSize = array.data.length / array.shape[0]!;
  const data = array.data.slice();
  order.forEach((row, i) => data.set(array.data.subarray(row * rowSize, (row + 1) * rowSize) as never, i * rowSize));
  return new NdArray(array.dtype, array.shape, data);
};

/**
 * Put the experts of a model in the order of their numbers, as a model begins: while it trains, experts may move to
 * other places. Of a model whose experts did not move, or that has none, nothing changes.
 */
export const inLogicalOrder = (
  { experts }: Pick<AnyModel, "experts">,
  { params, state }: LearntWeights,
): LearntWeights => {
  const leaves = leavesByPath<NdArray>(state);
  const places = new Map(
    (experts?.layers ?? []).map((layer) => [layer, leaves.get(`${layer.state}.placeOf_E`)!.toNumbers()] as const),
  );
  return {
    params: mapLeaves(params, (leaf, path) => {
      const [, placeOf] = [...places].find(([layer]) => path.startsWith(`${layer.params}.experts.`)) ?? [];
      return placeOf === undefined ? leaf : withRows(leaf, placeOf);
    }),
    state: mapLeaves(state, (leaf, path) =>
      [...places.keys()].some((layer) => path === `${layer.state}.placeOf_E`)
        ? NdArray.from(
            leaf.toNumbers().map((_, expert) => expert),
            leaf.shape,
            leaf.dtype,
          )
        : leaf,
    ),
  };
};
