// Symbols: n is the number of entries of a parameter, or of a rank's shard of the parameter. P ranks hold equal
// entries. A rank's slice has k = ⌈n / P⌉ entries.
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

// ZeRO, stage 1. Each of the P ranks that hold equal parameters keeps the optimizer state of 1/P of the entries,
// updates these entries, and receives the updates of all other entries from the other ranks. DeepSpeed calls this
// technique `zero_optimization.stage: 1`, PyTorch `ZeroRedundancyOptimizer`, Megatron the distributed optimizer.

/**
 * Returns the shape of a rank's slice: k entries, with as many dimensions as the parameter, because optimizers
 * distinguish matrices from vectors by the number of dimensions. Undefined: the tensor is not sliced, because it is a
 * scalar, is empty, or is held by a single rank.
 */
export const sliceShape = (shape: Shape, numRanks: number): Shape | undefined => {
  const count = elementCount(shape);
  if (numRanks === 1 || shape.length === 0 || count === 0) return undefined;
  return shape.map((_, dim) => (dim === 0 ? Math.ceil(count / numRanks) : 1));
};

/** Returns this rank's slice of a tensor that all ranks of an axis hold. The last slices may be padded with zeros. */
const ownSlice = (x: Tensor, axis: string): Tensor => {
  const shape = sliceShape(x.shape, axisSize(axis));
  if (shape === undefined) return x;
  const [count, each] = [elementCount(x.shape), shape[0]!];
  const missing = each * axisSize(axis) - count;
  const flat = reshape(x, [count]);
  const padded = missing === 0 ? flat : concat([flat, zeros([missing], x.dtype)]);
  return reshape(dynamicSlice(padded, [multiply(axisIndex(axis), each)], [each]), shape);
};

/**
 * Assembles a whole tensor from the slices of all ranks.
 * @param own this rank's slice. @param shape shape of the whole tensor.
 */
const fromSlices = (own: Tensor, axis: string, shape: Shape): Tensor => {
  if (sliceShape(shape, axisSize(axis)) === undefined) return own;
  const flat = gatherSlices(own, axis);
  const count = elementCount(shape);
  return reshape(flat.shape[0] === count ? flat : slice(flat, [0], [count]), shape);
};

/** Concatenates the slices of all ranks, with an all-gather: [k, …] on each of P ranks, [P·k] as result. */
export const gatherSlices = (own: Tensor, axis: string): Tensor =>
  allGather(reshape(own, [elementCount(own.shape)]), axis);

/**
 * Shards the state of an optimizer over the ranks that hold equal parameters. The updates are the same as without
 * sharding, because the optimizer works element by element and gradients are equal on these ranks. The last bit of a
 * parameter may differ: with sharding, an update is rounded before it is sent; without sharding, the last product of
 * the update and its sum with the parameter can be one fused operation.
 *
 * Cost with P ranks and n parameters: 1/P of the optimizer's state and flops; an all-gather of the updates in addition
 * to the exchange of the gradients, `(P−1)/P · 4n` bytes sent per rank.
 *
 * Source: Rajbhandari et al. 2020, arXiv 1910.02054 (P_os), with whole gradients on every rank.
 *
 * @param rule optimizer that works element by element: the update of an entry depends only on the entry and on the
 * number of dimensions of the parameter.
 * @param axisOf returns the axis along which ranks hold equal values of a parameter, by path.
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

/** A leaf of the optimizer's state that is sliced over ranks. */
export interface SlicedLeaf {
  /** Axis along which ranks hold the slices of the leaf. */
  readonly axis: string;
  /**
   * Shape of the parameter that the leaf belongs to, on this rank. The concatenated slices may have additional padding.
   */
  readonly shape: Shape;
}

/**
 * Returns the sliced leaves of a state, by path.
 * @param leaves specs of the state, by path. @param params specs of the parameters, by path.
 */
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

/** Returns the whole tensor from its concatenated slices, without the padding. */
export const wholeOfGathered = ({ dtype, data }: NdArray, shape: Shape): NdArray =>
  new NdArray(dtype, shape, data.slice(0, elementCount(shape)) as HostData);

/** Returns slice number `position` of the `numRanks` slices of a whole tensor. */
export const sliceOfWhole = ({ dtype, shape, data }: NdArray, position: number, numRanks: number): NdArray => {
  const own = sliceShape(shape, numRanks)!;
  const each = own[0]!;
  const result = new (data.constructor as new (length: number) => HostData)(each);
  result.set(data.subarray(position * each, (position + 1) * each) as never);
  return new NdArray(dtype, own, result);
};
