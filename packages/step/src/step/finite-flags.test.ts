import { meshPartition } from "@skein/collectives";
import { full, NdArray, type Sharding, type Tensor, trace } from "@skein/tensor-core";
import { interpretRanks } from "@skein/tensor-core/backend";
import fc from "fast-check";
import { expect, test } from "vitest";
import { finiteFlags } from "./finite-flags.ts";

const mesh = { data: 2, expert: 2, tensor: 2 };
const shardsOf: Readonly<Record<string, ReturnType<Sharding>>> = {
  experts: [
    { axis: "expert", dim: 0 },
    { axis: "tensor", dim: 1 },
  ],
  gate: [],
  matrix: [{ axis: "tensor", dim: 0 }],
  whole: [{ axis: "expert", dim: 0 }],
};
const names = Object.keys(shardsOf);

const { graph } = trace(
  (...gradients: Tensor[]) =>
    finiteFlags(
      full([], 1),
      Object.fromEntries(gradients.map((gradient, i) => [names[i]!, gradient])),
      (path) => shardsOf[path]!,
    ),
  names.map(() => NdArray.zeros("f32", [2, 1])),
  { mesh },
);

test("a part that is non-finite on any rank is so on all ranks that shard the tensor, and on no other", () => {
  fc.assert(
    fc.property(fc.nat(7), fc.constantFrom(...names), fc.constantFrom(NaN, Infinity), (faulty, name, value) => {
      const groupsOf = (rank: number): Record<string, readonly number[]> =>
        Object.fromEntries(
          Object.keys(mesh).map((axis) => [axis, meshPartition(mesh, axis).find((group) => group.includes(rank))!]),
        );
      const spec = { dtype: "f32", shape: [2, 1] } as const;
      const flags = interpretRanks(
        Array.from({ length: 8 }, () => graph),
        Array.from({ length: 8 }, (_, rank) =>
          names.map((own) => ({ spec, data: Float64Array.of(1, own === name && rank === faulty ? value : 2) })),
        ),
        Array.from({ length: 8 }, (_, rank) => groupsOf(rank)),
      ).map(([own]) => [...own!.data]);
      const axes = shardsOf[name]!.map(({ axis }) => axis as keyof typeof mesh);
      const placeOf = (rank: number) => ({ data: rank >> 2, expert: (rank >> 1) & 1, tensor: rank & 1 });
      flags.forEach((own, rank) => {
        // Ranks that differ from the faulty rank along other axes have other gradients, until gradients are averaged
        // along these axes.
        const others = (Object.keys(mesh) as (keyof typeof mesh)[]).filter((axis) => !axes.includes(axis));
        const sharesFault = others.every((axis) => placeOf(rank)[axis] === placeOf(faulty)[axis]);
        expect(own).toEqual([1, ...names.map((each) => (each === name && sharesFault ? 0 : 1))]);
      });
    }),
    { numRuns: 30 },
  );
});
