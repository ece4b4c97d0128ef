// Shapes: n entries of a parameter, or of a rank's shard of the parameter; P ranks that hold the same entries, k = ⌈n /
// P⌉ entries of a rank's slice.
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

// ZeRO, stage 1: each of the ranks that hold the same parameters keeps the optimizer's state of 1/P of the entries,
// updates these entries, and receives the updates of the other entries from the other ranks. DeepSpeed calls it
// `zero_optimization.stage: 1`, PyTorch `ZeroRedundancyOptimizer`, Megatron the distributed optimizer.

/**
 * Shape of a rank's slice: k entries, in as many dimensions as the parameter has, because optimizers distinguish
 * matrices from vectors by their dimensions. Absent: the tensor is not sliced, because it is a scalar or empty.
 */
export const sliceShape = (shape: Shape, numRanks: number): Shape | undefined => {
  const count = elementCount(shape);
  if (numRanks === 1 || shape.length === 0 || count === 0) return undefined;
  return shape.map((_, dim) => (dim === 0 ? Math.ceil(count / numRanks) : 1));
};

/** This rank's slice of a tensor that all ranks of an axis hold. The last slices may be padded with zeros. */
const ownSlice = (x: Tensor, axis: string): Tensor => {
  const shape = sliceShape(x.shape, axisSize(axis));
  if (shape === undefined) return x;
  const [count, each] = [elementCount(x.shape), shape[0]!];
  const missing = each * axisSize(axis) - count;
  const flat = reshape(x, [count]);
  const padded = missing === 0 ? flat : concat([flat, zeros([missing], x.dtype)]);
  return reshape(dynamicSlice(padded, [multiply(axisIndex(axis), each)], [each]), shape);
};

/** The whole tensor from the slices of all ranks. @param shape of the whole. */
const fromSlices = (own: Tensor, axis: string, shape: Shape): Tensor => {
  if (sliceShape(shape, axisSize(axis)) === undefined) return own;
  const flat = gatherSlices(own, axis);
  const count = elementCount(shape);
  return reshape(flat.shape[0] === count ? flat : slice(flat, [0], [count]), shape);
};

/** Concatenation of all slices: [k, …] on each rank to [P·k]. */
export const gatherSlices = (own: Tensor, axis: string): Tensor =>
  allGather(reshape(own, [elementCount(own.shape)]), axis);

/**
 * Shard the state of an optimizer over the ranks that hold the same parameters. The updates are the same as without
 * sharding, because the optimizer works element by element and gradients are equal on these ranks. The last bit of a
 * parameter may differ: an update is rounded before it is sent, but without sharding its last product and the sum with
 * the parameter can be one fused operation.
 *
 * Cost: 1/P of the optimizer's state and flops; an all-gather of the updates, `(P−1)/P · 4n` bytes sent per rank, in
 * addition to the exchange of the gradients.
 *
 * @param rule works element by element: the update of an entry depends only on that entry and on the number of
 * dimensions.
 * @param axisOf the axis along which ranks hold the same parameter, by path. Source: Rajbhandari et al. 2020, arXiv
 * 1910.02054 (P_os), with whole gradients on every rank.
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
  /** Axis along which the ranks hold the other slices. */
  readonly axis: string;
  /** Shape of all slices together. */
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

/** The whole tensor from gathered slices, without padding. */
export const wholeOfGathered = ({ dtype, data }: NdArray, shape: Shape): NdArray =>
  new NdArray(dtype, shape, data.slice(0, elementCount(shape)) as HostData);

/** The slice at position `position` of `numRanks` slices. */
export const sliceOfWhole = ({ dtype, shape, data }: NdArray, position: number, numRanks: number): NdArray => {
  const own = sliceShape(shape, numRanks)!;
  const each = own[0]!;
  const result = new (data.constructor as new (length: number) => HostData)(each);
  result.set(data.subarray(position * each, (position + 1) * each) as never);
  return new NdArray(dtype, own, result);
};
