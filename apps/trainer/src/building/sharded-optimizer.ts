// Shapes: n entries of a parameter, or of the part of it that a rank has; P ranks that hold the same, k = ⌈n / P⌉
// entries of a rank's slice.
import {
  allGather,
  axisIndex,
  concat,
  dynamicSlice,
  elementCount,
  type GradientTransformation,
  type HostData,
  leafPaths,
  mapTree,
  type Mesh,
  multiply,
  NdArray,
  reshape,
  type Shape,
  slice,
  type Tensor,
  zeros,
  zipTrees,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";

// ZeRO, stage 1: of ranks that hold the same parameters each keeps the optimizer's state of a P-th of their entries,
// updates those, and gets the updates of the others from the ranks that have them. DeepSpeed names it
// `zero_optimization.stage: 1`, PyTorch `ZeroRedundancyOptimizer`, Megatron the distributed optimizer.

/**
 * The shape of a rank's slice: k entries, in as many dimensions as the parameter has, since optimizers tell matrices
 * from vectors by them. Undefined for what is not cut: scalars, and what has no entries.
 */
export const sliceShape = (shape: Shape, numRanks: number): Shape | undefined => {
  const count = elementCount(shape);
  if (numRanks === 1 || shape.length === 0 || count === 0) return undefined;
  return shape.map((_, dim) => (dim === 0 ? Math.ceil(count / numRanks) : 1));
};

/** This rank's slice of what all ranks of an axis have. The last slices may end in zeros. */
const ownSlice = (x: Tensor, axis: string): Tensor => {
  const shape = sliceShape(x.shape, axisSize(axis));
  if (shape === undefined) return x;
  const [count, each] = [elementCount(x.shape), shape[0]!];
  const missing = each * axisSize(axis) - count;
  const flat = reshape(x, [count]);
  const padded = missing === 0 ? flat : concat([flat, zeros([missing], x.dtype)]);
  return reshape(dynamicSlice(padded, [multiply(axisIndex(axis), each)], [each]), shape);
};

/** What the slices of all ranks are together. @param shape of the whole. */
const fromSlices = (own: Tensor, axis: string, shape: Shape): Tensor => {
  if (sliceShape(shape, axisSize(axis)) === undefined) return own;
  const flat = gatherSlices(own, axis);
  const count = elementCount(shape);
  return reshape(flat.shape[0] === count ? flat : slice(flat, [0], [count]), shape);
};

/** All slices, one behind the other: [k, …] of each rank to [P·k]. */
export const gatherSlices = (own: Tensor, axis: string): Tensor =>
  allGather(reshape(own, [elementCount(own.shape)]), axis);

/**
 * An optimizer whose state is shared out over the ranks that hold the same parameters. The updates are those that each
 * of them would have made: the optimizer works by element, and gradients are equal on these ranks. In the last bit a
 * parameter may differ from what it is without, since an update is rounded before it travels, where its last product
 * and the sum with the parameter can be one operation otherwise.
 *
 * Cost: a P-th of the optimizer's state and flops; an all-gather of the updates, `(P−1)/P · 4n` bytes sent per rank,
 * beside the exchange of the gradients.
 *
 * @param rule works by element: the update of an entry depends on that entry alone, and on the number of dimensions.
 * @param axisOf the axis along which ranks hold the same, by path of the parameter.
 * Source: Rajbhandari et al. 2020, arXiv 1910.02054 (P_os), with whole gradients on every rank.
 */
export const shardedOptimizer = <State>(
  rule: GradientTransformation<State>,
  axisOf: (path: string) => string,
): GradientTransformation<State> => {
  const ownSlices = <P>(tree: P): P => mapTree(tree, (leaf: Tensor, path) => ownSlice(leaf, axisOf(path))) as P;
  return {
    init: (params) => rule.init(ownSlices(params)),
    update: (updates, state, context) => {
      const [own, after] = rule.update(ownSlices(updates), state, { ...context, params: ownSlices(context.params) });
      const paths = leafPaths(updates);
      let next = 0;
      const whole = zipTrees(
        (mine: Tensor, { shape }: Tensor) => fromSlices(mine, axisOf(paths[next++]!), shape),
        own,
        updates,
      );
      return [whole, after];
    },
  };
};

/** A leaf of the optimizer's state of which a rank has a slice. */
export interface SlicedLeaf {
  /** The ranks that have the other slices. */
  readonly axis: string;
  /** Of all slices together. */
  readonly shape: Shape;
}

/** The leaves of a state that are slices, by path. @param params specs, by path. @param leaves specs of the state. */
export const slicedLeaves = (
  leaves: ReadonlyMap<string, { readonly shape: Shape }>,
  params: ReadonlyMap<string, { readonly shape: Shape }>,
  { axisOf, mesh }: { readonly axisOf: (path: string) => string; readonly mesh: Mesh },
): Map<string, SlicedLeaf> => {
  const longestFirst = [...params].sort(([a], [b]) => b.length - a.length);
  const found = new Map<string, SlicedLeaf>();
  for (const [path, { shape: own }] of leaves) {
    if (!path.startsWith("optimizer.")) continue;
    const [param, spec] = longestFirst.find(([name]) => path.endsWith(`.${name}`)) ?? [];
    if (param === undefined) continue;
    const axis = axisOf(param);
    if (sliceShape(spec!.shape, mesh[axis] ?? 1)?.join() === own.join()) found.set(path, { axis, shape: spec!.shape });
  }
  return found;
};

/** The whole of gathered slices, without what fills up the last ones. */
export const wholeOfGathered = ({ dtype, data }: NdArray, shape: Shape): NdArray =>
  new NdArray(dtype, shape, data.slice(0, elementCount(shape)) as HostData);

/** The slice at a place, of as many as there are ranks. */
export const sliceOfWhole = ({ dtype, shape, data }: NdArray, place: number, numRanks: number): NdArray => {
  const own = sliceShape(shape, numRanks)!;
  const each = own[0]!;
  const result = new (data.constructor as new (length: number) => HostData)(each);
  result.set(data.subarray(place * each, (place + 1) * each) as never);
  return new NdArray(dtype, own, result);
};
