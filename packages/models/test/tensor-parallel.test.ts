import {
  ArgumentError,
  cast,
  flattenTree,
  full,
  gelu,
  leafPaths,
  matmul,
  mean,
  multiply,
  NdArray,
  normal,
  randomKey,
  reshape,
  square,
  sum,
  type Tensor,
  uniform,
  valueAndGrad,
} from "@skein/tensor-core";
import { uniformArray } from "@skein/testing";
import { describe, expect, test } from "vitest";
import { type FeedForwardLayer, gpt, type GptOptions, type LabelledBatch, type Model } from "../src/index.ts";
import { expectSame, onMesh, type Ranks, rowsOf, wholeTree } from "./tensor-ranks.ts";

const small = { vocabulary: 11, contextLength: 8, width: 16, numLayers: 2, numHeads: 4, hidden: 12 } as const;
const batchSize = 4;
const length = 8;
const inputs = uniformArray([batchSize, length], 0, 11, 3, "i32");
const labels = uniformArray([batchSize, length], 0, 11, 4, "i32");
const key = randomKey(5);
const dropKey = randomKey(9);

type Step = (
  key: Tensor,
  dropKey: Tensor,
  batch: LabelledBatch,
) => { loss: Tensor; params: unknown; gradients: unknown; tested: unknown };
const stepOf =
  (model: Model<never, never>, train = true): Step =>
  (initKey, ownKey, batch) => {
    const { params, state } = model.init(initKey);
    const [loss, gradients] = valueAndGrad(
      (own: typeof params) => model.loss(own, state, batch, { train, key: ownKey })[0],
    )(params);
    return { loss, params, gradients, tested: model.evaluate(params, state, batch) };
  };

/** Returns loss, parameters, gradients and metrics of a training step over all ranks. */
const trainOn = (
  model: Model<never, never>,
  ranks: Ranks,
  batch: { inputs: NdArray; labels: NdArray; mask?: NdArray } = { inputs, labels },
) => {
  const each = batchSize / ranks.data;
  const results = onMesh(stepOf(model), ranks, ({ data }) => [
    key,
    dropKey,
    Object.fromEntries(
      Object.entries(batch).map(([name, array]) => [name, rowsOf(array, data * each, (data + 1) * each)]),
    ),
  ]) as unknown as readonly Record<string, unknown>[];
  const numbers = (name: string): number[] => results.map((result) => (result[name] as NdArray).item());
  const tested = results.map((result) => result["tested"] as Record<string, NdArray>);
  return {
    loss: numbers("loss").reduce((total, loss) => total + loss, 0) / results.length,
    params: wholeTree(
      results.map((result) => result["params"]),
      ranks,
      model,
      "none",
    ),
    gradients: wholeTree(
      results.map((result) => result["gradients"]),
      ranks,
      model,
    ),
    tested: Object.fromEntries(
      ["correct", "lossSum", "count"].map((name) => [
        name,
        tested.reduce((total, one) => total + one[name]!.item(), 0),
      ]),
    ),
  };
};

const modelOf = (options: Partial<GptOptions> = {}): Model<never, never> => gpt({ ...small, ...options }) as never;

/** A layer that replaces a feed-forward layer: it processes each token separately and draws a random number. */
const layer: FeedForwardLayer = {
  init: (own) => ({ params: { weight: normal(own, [16, 16], { deviation: 0.3 }) }, state: {} }),
  apply: (params, state, x, { key: own }) => {
    const { weight } = params as { readonly weight: Tensor };
    const drawn = own === undefined ? full([1], 0) : uniform(own, [1]);
    return [gelu(matmul(x, weight)), state, { loss: sum(square(weight)), figures: { drawn } }];
  },
};

const variants: readonly (readonly [name: string, options: Partial<GptOptions>])[] = [
  ["rotary positions, gelu, rms norm, tied head", {}],
  [
    "learned positions, swiglu, layer norm, untied head",
    { positions: "learned", activation: "swiglu", norm: "layer", tiedHead: false },
  ],
  ["blocks recomputed in backward", { recompute: "blocks" }],
  ["an expert layer in the second block", { experts: { layer, every: 2 } }],
  ["an expert layer that receives all positions", { experts: { layer, every: 2, positions: "all" } }],
];

describe.each(variants)("a GPT with %s", (_, options) => {
  const alone = trainOn(modelOf(options), { data: 1, tensor: 1 });
  describe.each([true, false])("sequence %s", (sequence) => {
    test.each([
      { data: 1, tensor: 1 },
      { data: 1, tensor: 2 },
      { data: 2, tensor: 2 },
      { data: 1, tensor: 4 },
      { data: 2, tensor: 1 },
    ])("on $data × $tensor ranks equals one rank: parameters, loss, gradients and metrics", (ranks) => {
      const shared = trainOn(modelOf({ ...options, tensor: { axis: "tensor", sequence } }), ranks);
      expectSame(shared.params, alone.params);
      expect(shared.loss).toBeCloseTo(alone.loss, 6);
      expectSame(shared.gradients, alone.gradients);
      expect(shared.tested["count"]).toBe(alone.tested["count"]);
      expect(shared.tested["correct"]).toBe(alone.tested["correct"]);
      expect(shared.tested["lossSum"]).toBeCloseTo(alone.tested["lossSum"]!, 4);
    });
  });
});

test.each([true, false])("masked samples do not change the others, sequence %s", (sequence) => {
  const masked = { inputs, labels, mask: NdArray.from([1, 0, 1, 1], [4], "bool") };
  const alone = trainOn(modelOf(), { data: 1, tensor: 1 }, masked);
  const shared = trainOn(modelOf({ tensor: { axis: "tensor", sequence } }), { data: 1, tensor: 2 }, masked);
  expect(alone.tested["count"]).toBe(3 * length);
  expect(shared.tested["count"]).toBe(3 * length);
  expect(shared.loss).toBeCloseTo(alone.loss, 6);
  expectSame(shared.gradients, alone.gradients);
});

test.each([true, false])("dropout drops the same values as on one rank, sequence %s", (sequence) => {
  const alone = trainOn(modelOf({ dropoutRate: 0.3 }), { data: 1, tensor: 1 });
  expect(Math.abs(alone.loss - trainOn(modelOf(), { data: 1, tensor: 1 }).loss)).toBeGreaterThan(1e-4);
  const shared = trainOn(modelOf({ dropoutRate: 0.3, tensor: { axis: "tensor", sequence } }), { data: 1, tensor: 4 });
  expect(shared.loss).toBeCloseTo(alone.loss, 6);
  expectSame(shared.gradients, alone.gradients);
});

test.each([true, false])("apply returns all logits on every rank, with their gradients, sequence %s", (sequence) => {
  const run = (options: Partial<GptOptions>, ranks: Ranks) => {
    const model = modelOf(options);
    const results = onMesh(
      (initKey: Tensor, tokens: Tensor) => {
        const { params, state } = model.init(initKey);
        const logits = model.apply(params, state, tokens, { train: false })[0];
        const own = (p: typeof params): Tensor => mean(square(model.apply(p, state, tokens, { train: false })[0]));
        return { logits, gradients: valueAndGrad(own)(params)[1] as unknown };
      },
      ranks,
      () => [key, inputs],
    ) as unknown as readonly { readonly logits: NdArray; readonly gradients: unknown }[];
    return {
      logits: results.map(({ logits }) => logits),
      gradients: wholeTree(
        results.map(({ gradients }) => gradients),
        ranks,
        model,
      ),
    };
  };
  const alone = run({}, { data: 1, tensor: 1 });
  const shared = run({ tensor: { axis: "tensor", sequence } }, { data: 1, tensor: 4 });
  for (const logits of shared.logits)
    expectSame(new Map([["logits", logits]]), new Map([["logits", alone.logits[0]!]]));
  // In this test the loss is equal on all ranks; the rule for gradients does not require that.
  expectSame(shared.gradients, alone.gradients);
});

test.each([true, false])(
  "an expert layer draws different numbers on ranks with different tokens, sequence %s",
  (sequence) => {
    const drawnOn = (tensor: number, positions: "own" | "all" = "own"): number[] => {
      const model = modelOf({ experts: { layer, every: 1, positions }, tensor: { axis: "tensor", sequence } });
      const results = onMesh(
        (initKey: Tensor, ownKey: Tensor, batch: LabelledBatch) => {
          const { params, state } = model.init(initKey);
          return model.figures!(model.loss(params, state, batch, { train: true, key: ownKey })[1]);
        },
        { data: 1, tensor },
        () => [key, dropKey, { inputs, labels }],
      ) as unknown as readonly Readonly<Record<string, NdArray>>[];
      return results.flatMap((own) => [0, 1].flatMap((block) => own[`block-${block}.drawn`]!.toNumbers()));
    };
    expect(new Set(drawnOn(4)).size).toBe(8);
    expect(new Set(drawnOn(4, "all")).size).toBe(2);
    const plain = modelOf({ experts: { layer, every: 1 } });
    const [alone] = onMesh(
      (initKey: Tensor, ownKey: Tensor, batch: LabelledBatch) => {
        const { params, state } = plain.init(initKey);
        return plain.figures!(plain.loss(params, state, batch, { train: true, key: ownKey })[1]);
      },
      { data: 1, tensor: 1 },
      () => [key, dropKey, { inputs, labels }],
    ) as unknown as readonly Readonly<Record<string, NdArray>>[];
    expect(drawnOn(1)).toEqual([0, 1].flatMap((block) => alone![`block-${block}.drawn`]!.toNumbers()));
  },
);

test.each([true, false])(
  "a rank reports the choices for its own positions, whichever positions its experts receive, sequence %s",
  (sequence) => {
    const choosing: FeedForwardLayer = {
      ...layer,
      apply: (params, state, x, context) => {
        const [y, next, report] = layer.apply(params, state, x, context);
        return [y, next, { ...report, choices_TK: cast(multiply(reshape(x, [-1, 16]), 1000), "i32") }];
      },
    };
    const chosenOn = (tensor: number, positions: "own" | "all"): number[] => {
      const model = modelOf({
        experts: { layer: choosing, every: 2, positions },
        tensor: { axis: "tensor", sequence },
      });
      const results = onMesh(
        (initKey: Tensor, tokens: Tensor) => {
          const { params, state } = model.init(initKey);
          return model.experts!.choices(params, state, tokens, { train: false })[0]!;
        },
        { data: 1, tensor },
        () => [key, inputs],
      );
      // Converts [ranks, B, T / P, D] to [B, T, D].
      const each = results.map((own) => own.toNumbers());
      const perSample = each[0]!.length / batchSize;
      return Array.from({ length: batchSize }, (_, sample) =>
        each.flatMap((numbers) => numbers.slice(sample * perSample, (sample + 1) * perSample)),
      ).flat();
    };
    const alone = chosenOn(1, "own");
    for (const positions of ["own", "all"] as const)
      chosenOn(4, positions).forEach((value, i) => expect(Math.abs(value - alone[i]!)).toBeLessThanOrEqual(1)); // rounded
  },
);

test("without sequence parallelism, apply accepts a length not divisible by the ranks", () => {
  const model = modelOf({ tensor: { axis: "tensor", sequence: false } });
  const logits = onMesh(
    (initKey: Tensor, tokens: Tensor) => {
      const { params, state } = model.init(initKey);
      return model.apply(params, state, tokens, { train: false })[0];
    },
    { data: 1, tensor: 2 },
    () => [key, uniformArray([1, 5], 0, 11, 3, "i32")],
  );
  expect(logits[1]!.shape).toEqual([1, 5, 11]);
  expect(logits[1]!.toNumbers()).toEqual(logits[0]!.toNumbers());
});

describe("rejects in one line", () => {
  const ofTensor =
    (options: Partial<GptOptions>, tensor: number, batch = { inputs, labels }) =>
    () =>
      trainOn(modelOf({ tensor: { axis: "tensor" }, ...options }), { data: 1, tensor }, batch);
  const short = { inputs: uniformArray([4, 6], 0, 11, 3, "i32"), labels: uniformArray([4, 6], 0, 11, 3, "i32") };
  test.each([
    [
      "heads",
      ofTensor({ numHeads: 2 }, 4),
      /gpt: 2 heads are not divisible by 4 ranks of axis "tensor"; use a multiple of 4/,
    ],
    ["an odd number of heads", ofTensor({ width: 12, numHeads: 3 }, 2), /gpt: 3 heads are not divisible by 2 ranks/],
    ["hidden values", ofTensor({ hidden: 13 }, 2), /gpt: 13 hidden values are not divisible by 2 ranks/],
    ["positions", ofTensor({}, 4, short), /gpt: 6 positions are not divisible by 4 ranks/],
    [
      "positions in the loss",
      ofTensor({ tensor: { axis: "tensor", sequence: false } }, 4, short),
      /gpt: 6 positions are not divisible/,
    ],
  ])("%s not divisible by the ranks", (_, run, message) => {
    expect(run).toThrow(ArgumentError);
    expect(run).toThrow(message);
  });
});

test("describes the sharding of each parameter", () => {
  const model = gpt({
    ...small,
    activation: "swiglu",
    tiedHead: false,
    positions: "learned",
    tensor: { axis: "tensor" },
  });
  const [result] = onMesh(
    (initKey: Tensor) => model.init(initKey).params,
    { data: 1, tensor: 1 },
    () => [key],
  );
  const dims = new Map(leafPaths(result).map((path) => [path, model.sharding!(path)[0]?.dim]));
  const ofBlock = [...dims].filter(([path]) => path.startsWith("blocks.1."));
  expect(Object.fromEntries(ofBlock.map(([path, dim]) => [path.slice(9), dim]))).toEqual({
    "attentionNorm.gain": undefined,
    "feedForwardNorm.gain": undefined,
    query_DD: 1,
    key_DD: 1,
    value_DD: 1,
    output_DD: 0,
    up_DF: 1,
    gate_DF: 1,
    down_FD: 0,
  });
  expect([...dims].filter(([path, dim]) => !path.startsWith("blocks.") && dim !== undefined)).toEqual([]);
  expect(flattenTree(result).leaves).toHaveLength(dims.size);
});
