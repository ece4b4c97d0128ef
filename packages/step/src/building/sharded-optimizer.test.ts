import {
  adam,
  adamw,
  decayMatrices,
  flattenTree,
  type GradientTransformation,
  leafPaths,
  momentum,
  NdArray,
  nesterov,
  sgd,
  type Tensor,
  trace,
  unflattenTree,
} from "@skein/tensor-core";
import { interpretRanks } from "@skein/tensor-core/backend";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { shardedOptimizer, slicedLeaves, sliceOfWhole, sliceShape, wholeOfGathered } from "./sharded-optimizer.ts";

const learningRate = 0.1;
const rules: readonly (readonly [string, GradientTransformation<unknown>])[] = [
  ["sgd", sgd({ learningRate }) as GradientTransformation<unknown>],
  ["momentum", momentum({ learningRate }) as GradientTransformation<unknown>],
  ["nesterov", nesterov({ learningRate }) as GradientTransformation<unknown>],
  ["adam", adam({ learningRate }) as GradientTransformation<unknown>],
  // Decays matrices but not vectors. Slices must preserve this distinction.
  ["adamw", adamw({ learningRate, weightDecay: 0.5, mask: decayMatrices }) as GradientTransformation<unknown>],
];

// Sizes that are divisible by the number of ranks, sizes that are not, fewer entries than ranks, no entries, a scalar.
const shapes = { matrix: [3, 5], even: [4, 6], vector: [7], tiny: [2], single: [1, 1], scalar: [], empty: [0, 3] };
const arrays = (seed: number): Record<string, NdArray> =>
  Object.fromEntries(
    Object.entries(shapes).map(([name, shape], at) => {
      const count = shape.reduce<number>((product, size) => product * size, 1);
      return [
        name,
        NdArray.from(
          Array.from({ length: count }, (_, i) => Math.sin(seed + 7 * at + i)),
          shape,
          "f32",
        ),
      ];
    }),
  );
const all = (numRanks: number): number[] => Array.from({ length: numRanks }, (_, rank) => rank);

type Arrays = Record<string, Tensor>;

/** Makes two updates on each rank. Returns the updates, and the state after them. */
const updatesOn = (
  numRanks: number,
  rule: GradientTransformation<unknown>,
): { readonly updates: Record<string, NdArray>; readonly state: unknown }[] => {
  const inputs = [arrays(1), arrays(20), arrays(40)];
  const { graph, outputs } = trace(
    (params: Arrays, first: Arrays, second: Arrays) => {
      const [, between] = rule.update(first, rule.init(params), { params });
      const [updates, state] = rule.update(second, between, { params });
      return { updates, state };
    },
    inputs as never,
    { mesh: { data: numRanks } },
  );
  const leaves = flattenTree<NdArray>(inputs).leaves.map((array) => ({
    spec: { dtype: array.dtype, shape: array.shape },
    data: Float64Array.from(array.toNumbers()),
  }));
  const ranks = all(numRanks);
  return interpretRanks(
    ranks.map(() => graph),
    ranks.map(() => leaves),
    ranks.map(() => ({ data: ranks })),
  ).map((results) =>
    unflattenTree(
      outputs,
      results.map(({ spec, data }) => NdArray.from(data, spec.shape, spec.dtype)),
    ),
  );
};

describe.each(rules)("%s sharded", (_, rule) => {
  test.each([1, 2, 3, 4, 8])("over %i ranks makes the same updates on all of them", (numRanks) => {
    const [alone] = updatesOn(1, rule);
    for (const { updates } of updatesOn(
      numRanks,
      shardedOptimizer(rule, () => "data"),
    ))
      for (const [name, expected] of Object.entries(alone!.updates)) {
        expect(updates[name]!.shape).toEqual(expected.shape);
        expect(updates[name]!.toNumbers(), name).toEqual(expected.toNumbers());
      }
  });

  test("keeps a part of the state, in slices that can be found and joined", () => {
    const [alone] = updatesOn(1, rule);
    const results = updatesOn(
      4,
      shardedOptimizer(rule, () => "data"),
    );
    const namedLeaves = (state: unknown): Map<string, NdArray> => {
      const { leaves } = flattenTree<NdArray>({ optimizer: state });
      return new Map(leafPaths({ optimizer: state }).map((path, i) => [path, leaves[i]!]));
    };
    const [whole, parts] = [namedLeaves(alone!.state), results.map(({ state }) => namedLeaves(state))];
    const found = slicedLeaves(parts[0]!, new Map(Object.entries(arrays(1))), {
      axisOf: () => "data",
      mesh: { data: 4 },
    });
    for (const [path, expected] of whole) {
      const [slice, own] = [found.get(path), parts.map((named) => named.get(path)!)];
      if (slice === undefined) {
        expect(own[0]!.shape).toEqual(expected.shape);
        expect(own.map((array) => array.toNumbers())).toEqual(own.map(() => expected.toNumbers()));
        continue;
      }
      expect(own[0]!.data.length).toBe(Math.ceil(expected.data.length / 4));
      const gathered = NdArray.from(own.flatMap((array) => array.toNumbers()));
      const again = wholeOfGathered(gathered, slice.shape);
      expect(again.shape).toEqual(expected.shape);
      expect(again.toNumbers()).toEqual(expected.toNumbers());
      own.forEach((array, rank) => {
        const cut = sliceOfWhole(again, rank, 4);
        expect(cut.shape).toEqual(array.shape);
        expect(cut.toNumbers()).toEqual(array.toNumbers());
      });
    }
    const perParameter = [...whole.keys()].filter((path) => /\.(matrix|even|vector|tiny|single)$/.test(path));
    expect([...found.keys()].sort()).toEqual(perParameter.sort());
  });
});

test("law: slices have the rank of the whole tensor, and can be joined to it", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 2, max: 9 }),
      (shape, numRanks) => {
        const count = shape.reduce((product, size) => product * size, 1);
        const whole = NdArray.from(
          Array.from({ length: count }, (_, i) => i + 1),
          shape,
        );
        expect(sliceShape(shape, numRanks)).toHaveLength(shape.length);
        const slices = all(numRanks).map((place) => sliceOfWhole(whole, place, numRanks).toNumbers());
        expect(wholeOfGathered(NdArray.from(slices.flat()), shape).toNumbers()).toEqual(whole.toNumbers());
        expect(slices.flat().filter((value) => value !== 0)).toHaveLength(count);
      },
    ),
  );
});

test("of parameters whose names have the same suffix, each leaf belongs to the longest", () => {
  const spec = (shape: readonly number[]) => ({ shape });
  const found = slicedLeaves(
    new Map([
      ["optimizer.mean.weight", spec([2])],
      ["optimizer.mean.last.weight", spec([3])],
      ["optimizer.step", spec([])],
      ["params.weight", spec([2])],
    ]),
    new Map([
      ["weight", spec([4])],
      ["last.weight", spec([6])],
      ["step", spec([4])],
    ]),
    { axisOf: () => "data", mesh: { data: 2 } },
  );
  expect(found).toEqual(
    new Map([
      ["optimizer.mean.weight", { axis: "data", shape: [4] }],
      ["optimizer.mean.last.weight", { axis: "data", shape: [6] }],
    ]),
  );
});
