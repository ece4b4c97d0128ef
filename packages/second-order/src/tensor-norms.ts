import { allGather, concat, full, meshPlace, reshape, slice, sqrt, type Tensor } from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { elementCount } from "@skein/tensor-core";
import { normSquare } from "./rank-one.ts";
import { leastLoaded } from "./least-loaded.ts";

/**
 * The Euclidean norm of each tensor, f32 scalars. Along an axis, whose ranks have the same tensors, each rank computes
 * those of its share, and one small all-gather hands them round: the parallel tensor operator.
 *
 * Cost: a read of all tensors, over P; one all-gather of `⌈n/P⌉` numbers or a few more.
 * Source: Shi et al. 2020, arXiv 2010.10458, section 3.3.
 */
export const tensorNorms = (tensors: readonly Tensor[], axis?: string): Tensor[] => {
  const numRanks = axis === undefined ? 1 : axisSize(axis);
  if (axis === undefined || numRanks === 1) return tensors.map((tensor) => sqrt(normSquare(tensor)));
  const owners = leastLoaded(
    tensors.map(({ shape }) => elementCount(shape)),
    numRanks,
  );
  const shares = Array.from({ length: numRanks }, (_, rank) =>
    tensors.flatMap((_tensor, i) => (owners[i] === rank ? [i] : [])),
  );
  const room = Math.max(...shares.map(({ length }) => length));
  const own = shares[meshPlace(axis)]!;
  const norms = own.map((i) => reshape(sqrt(normSquare(tensors[i]!)), [1]));
  const filled = norms.length < room ? [...norms, full([room - norms.length], 0)] : norms;
  const all = allGather(concat(filled), axis);
  return tensors.map((_, i) => {
    const at = owners[i]! * room + shares[owners[i]!]!.indexOf(i);
    return reshape(slice(all, [at], [at + 1]), []);
  });
};
