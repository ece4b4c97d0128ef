import {
  evaluate,
  flattenTree,
  full,
  leafPaths,
  matmul,
  NdArray,
  normal,
  randomKey,
  referenceBackend,
  sum,
  square,
  add,
  type Tensor,
  valueAndGrad,
} from "@skein/tensor-core";
import { expect, test } from "vitest";
import { gpt } from "./gpt.ts";
import type { FeedForwardLayer, GptOptions } from "./gpt-options.ts";

/** A layer with one small matrix, which counts its calls in its state. */
const layer: FeedForwardLayer = {
  init: (key) => ({ params: { weight: normal(key, [8, 8], { deviation: 0.1 }) }, state: { uses: full([], 0) } }),
  apply: (params, state, x, { train }) => {
    const { weight } = params as { weight: Tensor };
    const { uses } = state as { uses: Tensor };
    return [
      matmul(x, weight),
      { uses: train ? add(uses, 1) : uses },
      { loss: sum(square(weight)), figures: { uses, vector: full([3], 2) } },
    ];
  },
};
const options = (every: number): GptOptions => ({
  contextLength: 4,
  width: 8,
  numLayers: 4,
  numHeads: 2,
  experts: { layer, every, sharding: (path) => (path === "weight" ? [{ axis: "expert", dim: 0 }] : []) },
});
const tokens = NdArray.from([1, 2, 3, 4], [1, 4], "i32");
const batch = { inputs: tokens, labels: tokens };

interface Result {
  readonly trained: NdArray;
  readonly tested: NdArray;
  readonly without: NdArray;
  readonly penalty: NdArray;
  readonly own: readonly { readonly uses: NdArray }[];
  readonly figures: Readonly<Record<string, NdArray>>;
  readonly gradient: NdArray;
  readonly params: unknown;
}

test.each(["none", "blocks"] as const)("experts replace feed-forward layers, with recompute %s", async (recompute) => {
  const model = gpt({ ...options(2), recompute });
  const plain = gpt({
    ...options(2),
    experts: {
      ...options(2).experts!,
      layer: {
        ...layer,
        apply: (p, s, x, c) => {
          const [y, next, report] = layer.apply(p, s, x, c);
          return [y, next, { ...report, loss: full([], 0) }];
        },
      },
    },
  });
  const fn = (key: Tensor, own: typeof batch) => {
    const { params, state } = model.init(key);
    const [trained, next] = model.loss(params, state, own as never, { train: true, key });
    const [tested] = model.loss(params, state, own as never, { train: false });
    const [without] = plain.loss(params, state, own as never, { train: true, key });
    const [, gradients] = valueAndGrad(
      (p: typeof params) => model.loss(p, state, own as never, { train: true, key })[0],
    )(params);
    const weights = params.blocks.flatMap(({ experts }) =>
      experts === undefined ? [] : [(experts as { weight: Tensor }).weight],
    );
    return {
      trained,
      tested,
      without,
      penalty: weights.map((weight) => sum(square(weight))).reduce((a, b) => add(a, b)),
      own: next.experts!.map(({ own: kept }) => kept),
      figures: model.figures!(next),
      gradient: (gradients.blocks[1]!.experts as { weight: Tensor }).weight,
      params,
    };
  };
  const result = (await evaluate(fn as never, referenceBackend())(randomKey(1) as never, batch as never)) as Result;
  expect(result.trained.item()).toBeCloseTo(result.without.item() + result.penalty.item(), 5);
  expect(result.tested.item()).toBeCloseTo(result.without.item(), 5);
  expect(result.own.map(({ uses }) => uses.item())).toEqual([1, 1]);
  expect(Object.keys(result.figures).sort()).toEqual(
    ["block-1", "block-3"].flatMap((block) => ["auxiliaryLoss", "uses", "vector"].map((name) => `${block}.${name}`)),
  );
  expect(result.gradient.toNumbers().some((value) => value !== 0)).toBe(true);
  const paths = leafPaths(result.params);
  expect(paths.filter((path) => /experts/.test(path))).toEqual(["blocks.1.experts.weight", "blocks.3.experts.weight"]);
  expect(paths.filter((path) => model.sharding!(path).length > 0)).toEqual(
    paths.filter((path) => /experts/.test(path)),
  );
  expect(flattenTree(result.own).leaves).toHaveLength(2);
});

test("rejects experts that no block would have", () => {
  expect(() => gpt(options(5))).toThrow(/experts\.every is 5, but there are 4 blocks; use an integer from 1 to 4/);
  expect(() => gpt(options(0))).toThrow(/use an integer from 1 to 4/);
});
