import { flattenTree, leafPaths, NdArray, unflattenTree } from "@skein/tensor-core";
import { leavesByPath } from "@skein/tensor-core/backend";
import type { AnyModel } from "../task/task.ts";

/** Trained weights of a run, assembled from all ranks. */
export interface TrainedWeights {
  readonly params: unknown;
  /** Model state, such as running statistics. */
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

/** Returns an array with reordered rows: row i of the result is row `order[i]` of `array`. */
const withRows = (array: NdArray, order: readonly number[]): NdArray => {
  const rowSize = array.data.length / array.shape[0]!;
  const data = array.data.slice();
  order.forEach((row, i) => data.set(array.data.subarray(row * rowSize, (row + 1) * rowSize) as never, i * rowSize));
  return new NdArray(array.dtype, array.shape, data);
};

/**
 * Returns the weights with experts in the order of their numbers, as in a new model. During training, experts may move
 * to other slots. If the model has no experts, or no expert moved, returns the weights unchanged.
 */
export const inLogicalOrder = (
  { experts }: Pick<AnyModel, "experts">,
  { params, state }: TrainedWeights,
): TrainedWeights => {
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
