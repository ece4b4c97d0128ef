import { expect, test } from "vitest";
import { slice } from "./functions/movement.ts";
import { axisSize, meshCoordinate } from "./graph/emit.ts";
import type { Tensor } from "./graph/tensor.ts";
import { trace } from "./tracing/trace.ts";
import { NdArray } from "./nd-array.ts";
import { ownShard } from "./functions/shards.ts";
import { clipByGlobalNorm, globalNorm } from "./optim/clip-by-global-norm.ts";
import { interpretRanks } from "./reference/interpret.ts";
import type { Sharding } from "./sharding.ts";

interface Tree {
  readonly b: Tensor;
  readonly w: Tensor;
}
const tree = { b: [4, 2], w: [3, 0, 1, 2, -5, 1, 0.5, -1] };

/**
 * Runs a function on each rank of the mesh "expert" × "tensor" ("tensor" innermost), with `w` [4, 2] replicated on all
 * ranks.
 */
const onRanks = (numRanks: number, fn: (own: Tree) => Tensor, numTensor = 1): number[][] => {
  const arrays = { b: NdArray.from(tree.b), w: NdArray.from(tree.w, [4, 2]) };
  const all = Array.from({ length: numRanks * numTensor }, (_, rank) => rank);
  const placeOf = (rank: number) => ({ expert: Math.floor(rank / numTensor), tensor: rank % numTensor });
  const mesh = { expert: numRanks, tensor: numTensor };
  const graphs = all.map((rank) => trace(fn, [arrays as never], { mesh, place: placeOf(rank) }).graph);
  const alike = (axis: "expert" | "tensor", rank: number): number[] =>
    all.filter((other) => placeOf(other)[axis] === placeOf(rank)[axis]);
  const inputs = all.map(() =>
    [arrays.b, arrays.w].map((array) => ({
      spec: { dtype: array.dtype, shape: array.shape },
      data: Float64Array.from(array.toNumbers()),
    })),
  );
  return interpretRanks(
    graphs,
    inputs,
    all.map((rank) => ({ expert: alike("tensor", rank), tensor: alike("expert", rank) })),
  ).map(([result]) => [...result!.data]);
};

/** Returns this rank's shard of `w` [4, 2]. */
const ownRows = (w: Tensor): Tensor => {
  const each = 4 / axisSize("expert");
  const first = each * meshCoordinate("expert");
  return slice(w, [first, 0], [first + each, 2]);
};
const rows: Sharding = (path) => (path === "w" ? [{ axis: "expert", dim: 0 }] : []);
test.each([1, 2, 4])("on %d ranks a norm includes the shards of all ranks, and replicated tensors once", (numRanks) => {
  const norm = Math.hypot(...tree.b, ...tree.w);
  const own = ({ b, w }: Tree): Tree => ({ b, w: ownRows(w) });
  for (const [value] of onRanks(numRanks, (all) => globalNorm(own(all), rows))) expect(value).toBeCloseTo(norm, 6);
  const clipped = onRanks(numRanks, (all) => {
    const [updates] = clipByGlobalNorm(1, rows).update(own(all), {}, { params: own(all) });
    return (updates as Tree).w;
  }).flat();
  clipped.forEach((value, i) => expect(value).toBeCloseTo(tree.w[i]! / norm, 6));
});

test.each([
  [1, 2],
  [2, 2],
  [4, 2],
])("and with tensors sharded over %d × %d ranks along two axes, each shard once", (numExpert, numTensor) => {
  const parts: Sharding = (path) => [...rows(path), ...(path === "w" ? [{ axis: "tensor", dim: 1 }] : [])];
  const own = ({ b, w }: Tree): Tree => ({ b, w: ownShard(ownRows(w), { axis: "tensor", dim: 1 }) });
  for (const [value] of onRanks(numExpert, (all) => globalNorm(own(all), parts), numTensor))
    expect(value).toBeCloseTo(Math.hypot(...tree.b, ...tree.w), 6);
});
