import {
  allGather,
  concat,
  full,
  meshCoordinate,
  reshape,
  slice,
  sqrt,
  square,
  sum,
  type Tensor,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { elementCount } from "@skein/tensor-core";
import { normSquare } from "./rank-one.ts";
import { leastLoaded } from "./least-loaded.ts";

/**
 * Computes the Euclidean norm of each tensor, f32 scalar. With `stackDims`, computes one norm per index of the leading
 * dimensions, f32 with these dimensions. With an axis, whose ranks must have equal tensors, each rank computes its
 * share of the norms, and one small all-gather distributes them (parallel tensor operator).
 *
 * @param stackDims number of leading dimensions with separate norms, per tensor. Default: 0.
 * Cost: a read of all tensors, divided by P; one all-gather of `⌈n/P⌉` numbers or slightly more.
 * Source: Shi et al. 2020, arXiv 2010.10458, section 3.3.
 */
export const tensorNorms = (tensors: readonly Tensor[], axis?: string, stackDims: readonly number[] = []): Tensor[] => {
  const numRanks = axis === undefined ? 1 : axisSize(axis);
  const normOf = (i: number): Tensor => {
    const [tensor, stack] = [tensors[i]!, stackDims[i] ?? 0];
    if (stack === 0) return sqrt(normSquare(tensor));
    return sqrt(sum(square(tensor), { dims: Array.from({ length: tensor.rank - stack }, (_, at) => stack + at) }));
  };
  if (axis === undefined || numRanks === 1) return tensors.map((_, i) => normOf(i));
  const shapes = tensors.map(({ shape }, i) => shape.slice(0, stackDims[i] ?? 0));
  const sizes = shapes.map((shape) => elementCount(shape));
  const owners = leastLoaded(
    tensors.map(({ shape }) => elementCount(shape)),
    numRanks,
  );
  const shares = Array.from({ length: numRanks }, (_, rank) =>
    tensors.flatMap((_tensor, i) => (owners[i] === rank ? [i] : [])),
  );
  const sizeOf = (some: readonly number[]): number => some.reduce((total, i) => total + sizes[i]!, 0);
  const room = Math.max(...shares.map(sizeOf));
  const own = shares[meshCoordinate(axis)]!;
  const norms = own.map((i) => reshape(normOf(i), [sizes[i]!]));
  const left = room - sizeOf(own);
  const all = allGather(concat(left > 0 ? [...norms, full([left], 0)] : norms), axis);
  return tensors.map((_, i) => {
    const share = shares[owners[i]!]!;
    const at = owners[i]! * room + sizeOf(share.slice(0, share.indexOf(i)));
    return reshape(slice(all, [at], [at + sizes[i]!]), shapes[i]!);
  });
};
