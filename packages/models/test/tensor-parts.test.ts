import { gatherShards, multiply, type NdArray, ownShard, sum, sumToShards, type Tensor } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import { describe, expect, test } from "vitest";
import { onMesh } from "./tensor-ranks.ts";

const partShapes = [[1], [3], [2, 1], [3, 2], [2, 3, 2], [1, 2, 2, 3]];
const grid = [1, 2, 3, 4].flatMap((tensor) =>
  partShapes.flatMap((part) => [...part.keys()].map((dim) => ({ tensor, part, dim }))),
);

describe.each(grid)("on $tensor ranks, parts $part along dimension $dim", ({ tensor, part, dim }) => {
  const shard = { axis: "tensor", dim };
  const ranks = { data: 1, tensor };
  const whole = part.map((size, at) => (at === dim ? size * tensor : size));

  test("are gathered to the whole, and summed to the shard of the sum", () => {
    const all = normalArray(whole, 7);
    const again = onMesh(
      (x: Tensor) => gatherShards(ownShard(x, shard), shard),
      ranks,
      () => [all],
    );
    for (const own of again) expect(own.toNumbers()).toEqual(all.toNumbers());
    const summands = Array.from({ length: tensor }, (_, i) => normalArray(whole, 7 + i));
    const sums = onMesh(
      (x: Tensor) => gatherShards(sumToShards(x, shard), shard),
      ranks,
      (place) => [summands[place.tensor]],
    );
    const expected = all.toNumbers().map((_, i) => summands.reduce((total, one) => total + one.toNumbers()[i]!, 0));
    for (const own of sums) {
      expect(own.shape).toEqual(whole);
      own.toNumbers().forEach((value, i) => expect(value).toBeCloseTo(expected[i]!, 5));
    }
  });

  test("gathering and summing are adjoint to each other", () => {
    // The two maps are transposes: ⟨gather(x), y⟩ summed over all ranks equals ⟨x, sum(y)⟩.
    const results = onMesh(
      (x: Tensor, y: Tensor) => {
        const own = ownShard(x, shard);
        return [sum(multiply(gatherShards(own, shard), y)), sum(multiply(own, sumToShards(y, shard)))];
      },
      ranks,
      (place) => [normalArray(whole, 10), normalArray(whole, 20 + place.tensor)],
    ) as unknown as readonly (readonly NdArray[])[];
    const total = (at: number): number => results.reduce((result, own) => result + own[at]!.item(), 0);
    expect(total(0)).toBeCloseTo(total(1), 4);
  });
});

test("rejects a size not divisible by the ranks", () => {
  const run = (fn: (x: Tensor) => Tensor) => () => onMesh(fn, { data: 1, tensor: 2 }, () => [normalArray([2, 3], 1)]);
  expect(run((x) => ownShard(x, { axis: "tensor", dim: 1 }))).toThrow(
    /ownShard: dimension 1 of \[2, 3\] has 3, which .* the 2 ranks/,
  );
  expect(run((x) => sumToShards(x, { axis: "tensor", dim: 1 }))).toThrow(/sumToShards: dimension 1/);
});
