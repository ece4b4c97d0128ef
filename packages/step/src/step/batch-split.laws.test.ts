import { batchPartOf, checkJob, meshGroups, meshOf, placeOf } from "@skein/job/node";
import { bert, gpt, labelledModel, mlp, rowLossModel, type RunContext } from "@skein/models";
import {
  balanceLoss,
  balancingBiasGate,
  capacityByMaximum,
  geluExperts,
  importanceLoadLoss,
  moeLayer,
  sigmoidGate,
  switchGate,
  zLoss,
} from "@skein/moe-parallel";
import {
  add,
  cast,
  crossEntropyPerRow,
  flattenTree,
  leafPaths,
  matmul,
  mean,
  multiply,
  NdArray,
  normal,
  notEqual,
  randomKey,
  square,
  subtract,
  sum,
  type Tensor,
} from "@skein/tensor-core";
import { examples, runOnRanks } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { AnyModel, BatchTree } from "../task/task.ts";
import { settle } from "./deferred-step.ts";
import { stepOverParts } from "./step-over-parts.ts";
import { buildParts, initState, stepKindAt } from "./train-state.ts";

// A step has the same result for each split of its batch over ranks, over parts that a rank computes one after the
// other, and over a mesh. The tests use the reference backend in f64, so that rounding does not matter.

const batch = 8;
const width = 3;
const classes = 4;
const length = 4;
const vocabulary = 7;

type Fields = Readonly<Record<string, NdArray>>;

/** A model, and the batch to split. */
interface Problem {
  readonly model: AnyModel;
  readonly fields: Fields;
}

/** Split of a batch. */
interface Split {
  readonly ranks: number;
  readonly accumulate: number;
  readonly mesh?: { readonly expert?: number; readonly tensor?: number };
}

const whole: Split = { ranks: 1, accumulate: 1 };

const jobOf = ({ ranks, accumulate, mesh = {} }: Split, settings: object) =>
  checkJob(
    {
      name: "split",
      ranks,
      mesh,
      batch,
      ...(accumulate > 1 && { accumulate }),
      steps: 4,
      data: { kind: "mnist" },
      model: { kind: "mlp", hidden: [5] },
      evaluation: { batch },
      optimizer: { kind: "sgd" },
      learningRate: { peak: 0.5 },
      ...settings,
    },
    { file: "job.yaml" },
  );

const rowsOf = (array: NdArray, from: number, to: number): NdArray => {
  const each = array.data.length / array.shape[0]!;
  return new NdArray(array.dtype, [to - from, ...array.shape.slice(1)], array.data.slice(from * each, to * each));
};

const numSteps = 2;

/** Returns loss, parameters, and states of optimizer and model after some steps on the batch, by path, from rank 0. */
const stepped = (
  { model, fields }: Problem,
  split: Split,
  settings: object,
): ReadonlyMap<string, readonly number[]> => {
  const job = jobOf(split, settings);
  const specs = Object.fromEntries(
    Object.entries(fields).map(([name, { dtype, shape }]) => [name, { dtype, shape: shape.slice(1) }]),
  );
  const parts = buildParts({ job, model, totalSteps: 4, train: { fields: specs } });
  const groups = Object.entries(meshGroups(job));
  const partsOf = (rank: number): Fields[] => {
    const { rank: part, worldSize } = batchPartOf(job, rank);
    const size = batch / worldSize / split.accumulate;
    return Array.from({ length: split.accumulate }, (_, i) => {
      const from = (part * split.accumulate + i) * size;
      return Object.fromEntries(
        Object.entries(fields).map(([name, array]) => [name, rowsOf(array, from, from + size)]),
      );
    });
  };
  const [result] = runOnRanks(
    (key: Tensor, batches: readonly BatchTree[]) => {
      let state = initState(parts)(key);
      let loss: Tensor | undefined;
      for (let step = 0; step < numSteps; step++)
        ({ state, loss } = stepOverParts(parts, stepKindAt(parts, step))(state, ...batches));
      if (job.overlap === "dear") ({ state } = settle(parts, parts.compressorAt(0))(state));
      const { params, optimizer, model: own } = state;
      return { loss, params, optimizer, model: own };
    },
    Array.from({ length: split.ranks }, (_, rank) => [randomKey(1), partsOf(rank)] as never),
    {
      mesh: meshOf(job),
      placeOf: (rank) => placeOf(job, rank),
      groupsOf: (rank) =>
        Object.fromEntries(groups.map(([axis, members]) => [axis, members.find((group) => group.includes(rank))!])),
    },
  );
  const { leaves } = flattenTree<NdArray>(result);
  return new Map(leafPaths(result).map((path, i) => [path, leaves[i]!.toNumbers()]));
};

/**
 * Requires that two sets of leaves are equal up to rounding.
 *
 * @param tolerance Upper bound of the differences in a leaf, relative to the leaf's largest absolute value.
 */
const expectSame = (
  own: ReadonlyMap<string, readonly number[]>,
  other: ReadonlyMap<string, readonly number[]>,
  tolerance: number,
): void => {
  expect([...own.keys()]).toEqual([...other.keys()]);
  for (const [path, values] of own) {
    const scale = Math.max(1e-6, ...other.get(path)!.map(Math.abs));
    const worst = values.reduce((most, value, i) => Math.max(most, Math.abs(value - other.get(path)![i]!)), 0);
    expect(worst / scale, path).toBeLessThan(tolerance);
    expect(values.every(Number.isFinite), path).toBe(true);
  }
};

const uniform = (seed: number, count: number): number[] =>
  Array.from({ length: count }, (_, i) => Math.sin(seed + 1.7 * i + 0.3 * i * i));

const linear = {
  init: (key: Tensor) => ({ params: { w: normal(key, [width, classes], { deviation: 0.5 }) }, state: {} }),
  apply: (params: { readonly w: Tensor }, state: object, x: Tensor, _: RunContext) =>
    [matmul(x, params.w), state] as const,
};

const ignored = -100;

/**
 * Arbitrary token labels, some of which are ignored. Each sample has a different share of ignored labels; in some
 * samples all labels or none are ignored.
 */
const maskedLabels = fc
  .array(fc.array(fc.integer({ min: -2, max: classes - 1 }), { minLength: length, maxLength: length }), {
    minLength: batch,
    maxLength: batch,
  })
  .chain((rows) =>
    fc.array(fc.constantFrom("as drawn", "none", "all"), { minLength: batch, maxLength: batch }).map((kinds) =>
      rows.map((row, i) => {
        if (kinds[i] === "none") return row.map(() => ignored);
        return row.map((label) => (label >= 0 ? label : kinds[i] === "all" ? 0 : ignored));
      }),
    ),
  );

const tokenFields = (labels: readonly (readonly number[])[]): Fields => ({
  inputs: NdArray.from(uniform(1, batch * length * width), [batch, length, width]),
  labels: NdArray.from(labels.flat(), [batch, length], "i32"),
});

/** Problems by name, made from token labels of which some are ignored. */
const problems: Readonly<Record<string, (labels: readonly (readonly number[])[]) => Problem>> = {
  "masked labels": (labels) => ({
    model: labelledModel(linear, { ignoreIndex: ignored }) as AnyModel,
    fields: tokenFields(labels),
  }),
  "masked labels, smoothed": (labels) => ({
    model: labelledModel(linear, { ignoreIndex: ignored, labelSmoothing: 0.2 }) as AnyModel,
    fields: tokenFields(labels),
  }),
  "samples that only fill up the batch": (labels) => ({
    model: labelledModel(linear) as AnyModel,
    fields: {
      ...tokenFields(labels.map((row) => row.map((label) => Math.max(0, label)))),
      mask: NdArray.from(
        labels.map(([first]) => (first === ignored ? 0 : 1)),
        [batch],
        "bool",
      ),
    },
  }),
  "weighted rows": (labels) => ({
    model: rowLossModel({
      ...linear,
      losses: (outputs: Tensor, { inputs }: { readonly inputs: Tensor }) =>
        mean(square(subtract(outputs, mean(inputs, { dims: [2], keepDims: true }))), { dims: [2] }),
      weights: ({ labels: own }: { readonly inputs: Tensor; readonly labels: Tensor }) =>
        multiply(add(cast(own, "f32"), 1), 0.3),
    }) as unknown as AnyModel,
    fields: tokenFields(labels.map((row) => row.map((label) => (label === ignored ? -1 : label)))),
  }),
  "a user's sum and count": (labels) => ({
    model: {
      ...labelledModel(linear),
      loss: (
        params: never,
        state: never,
        { inputs, labels: own }: { inputs: Tensor; labels: Tensor },
        context: never,
      ) => {
        const [logits, next] = linear.apply(params, state, inputs, context);
        const losses = crossEntropyPerRow(logits, own, { ignoreIndex: ignored });
        const total = { sum: sum(losses), count: sum(cast(notEqual(own, ignored), "f32")) };
        return [total.sum, next, total] as const;
      },
    } as unknown as AnyModel,
    fields: tokenFields(labels),
  }),
  "a BERT whose tokens are partly masked": (labels) => ({
    model: bert({
      vocabulary,
      contextLength: length,
      width: 4,
      numLayers: 1,
      numHeads: 2,
      hidden: 5,
      head: "tokens",
    }) as AnyModel,
    fields: {
      inputs: NdArray.from(
        Array.from({ length: batch * length }, (_, i) => (3 * i + 1) % vocabulary),
        [batch, length],
        "i32",
      ),
      labels: NdArray.from(labels.flat(), [batch, length], "i32"),
    },
  }),
  "every row counts": (labels) => ({
    model: labelledModel(linear) as AnyModel,
    fields: tokenFields(labels.map((row) => row.map((label) => Math.max(0, label)))),
  }),
};

const splits: readonly Split[] = [
  { ranks: 2, accumulate: 1 },
  { ranks: 4, accumulate: 1 },
  { ranks: 1, accumulate: 2 },
  { ranks: 1, accumulate: 8 },
  { ranks: 2, accumulate: 2 },
  { ranks: 4, accumulate: 2 },
];

/** Job settings with which a step must have the same result whether or not its batch is split into microbatches. */
const kept: readonly object[] = [
  {},
  { optimizer: { kind: "adamw" }, clipNorm: 0.01 },
  { optimizer: { kind: "momentum" }, compression: { kind: "top-k", density: 1 } },
  { precision: { kind: "mixed-f16" } },
  { optimizer: { kind: "nesterov" }, zero: 1 },
  { optimizer: { kind: "momentum" }, overlap: "dear" },
];

describe("a step over masked, weighted and plain rows", () => {
  test.each(Object.entries(problems))("does not depend on the split of its batch: %s", (_, problemOf) => {
    fc.assert(
      fc.property(maskedLabels, fc.constantFrom(...splits), fc.constantFrom(...kept), (labels, split, settings) => {
        const problem = problemOf(labels);
        const { zero, overlap: _, ...alone } = settings as { readonly zero?: number; readonly overlap?: string };
        const [ofWhole, ofParts] = [stepped(problem, whole, alone), stepped(problem, split, settings)];
        const shared = (of: typeof ofWhole): typeof ofWhole =>
          new Map([...of].filter(([path]) => zero === undefined || !path.startsWith("optimizer")));
        expectSame(shared(ofParts), shared(ofWhole), 2e-6);
      }),
      { numRuns: examples(4, 60), seed: 32 },
    );
  });

  test("parts and ranks of a compressed step add up to its batch, with error feedback", () => {
    fc.assert(
      fc.property(
        maskedLabels,
        fc.constantFrom("top-k", "random-k", "one-bit", "power-sgd"),
        fc.constantFrom(2, 4),
        (labels, kind, accumulate) => {
          const problem = problems["masked labels"]!(labels);
          const settings = { compression: { kind, ...(kind.endsWith("-k") && { density: 0.3 }) } };
          expectSame(
            stepped(problem, { ranks: 2, accumulate }, settings),
            stepped(problem, { ranks: 2, accumulate: 1 }, settings),
            1e-5,
          );
        },
      ),
      { numRuns: examples(4, 60), seed: 32 },
    );
  });

  test("without any counted row moves nothing", () => {
    const labels = Array.from({ length: batch }, () => Array<number>(length).fill(ignored));
    for (const split of [whole, { ranks: 2, accumulate: 2 }]) {
      const after = stepped(problems["masked labels"]!(labels), split, {});
      expect(after.get("loss")).toEqual([0]);
      expect(after.get("params.w")!.every(Number.isFinite)).toBe(true);
    }
  });
});

const optimizers: readonly Readonly<Record<string, unknown>>[] = [
  { kind: "lamb" },
  { kind: "lars" },
  { kind: "kfac", size: "free", damping: 0.03, factorEvery: 1, inverseEvery: 1 },
  { kind: "kfac", positions: "reduce", factorEvery: 1, inverseEvery: 2 },
  { kind: "kfac", form: "d", inverse: "eigen" },
  { kind: "eva", size: "free" },
  { kind: "eva-f" },
  { kind: "eva-s" },
  { kind: "shampoo" },
  { kind: "soap" },
  { kind: "muon" },
];

describe("the update of an optimizer", () => {
  const inputs = NdArray.from(uniform(5, batch * 3), [batch, 3]);
  const labels = NdArray.from(
    Array.from({ length: batch }, (_, i) => (i * i) % 3),
    [batch],
    "i32",
  );
  const points: Problem = { model: mlp({ sizes: [3, 4, 3] }) as AnyModel, fields: { inputs, labels } };
  const tokens = Array.from({ length: batch * length }, (_, i) => (5 * i + i * i) % vocabulary);
  const text: Problem = {
    model: gpt({ vocabulary, contextLength: length, width: 4, numLayers: 1, numHeads: 2, hidden: 6 }) as AnyModel,
    fields: {
      inputs: NdArray.from(tokens, [batch, length], "i32"),
      labels: NdArray.from(
        tokens.map((token) => (token * 3 + 1) % vocabulary),
        [batch, length],
        "i32",
      ),
    },
  };
  test.each(optimizers.map((optimizer) => [JSON.stringify(optimizer), optimizer] as const))(
    "does not depend on the split of the batch: %s",
    (_, optimizer) => {
      for (const split of examples([splits[4]!], splits))
        for (const problem of [points, text]) {
          const of = (own: Split): ReadonlyMap<string, readonly number[]> => {
            const all = stepped(problem, own, { optimizer, learningRate: { peak: 0.02 } });
            // In directions without a gradient, SOAP's basis is arbitrary, and its moments are dominated by rounding.
            return optimizer.kind === "soap" ? new Map([["loss", all.get("loss")!]]) : all;
          };
          expectSame(of(split), of(whole), 1e-4);
        }
    },
  );
});

describe("the update of experts", () => {
  const tokens = Array.from({ length: batch * length }, (_, i) => (5 * i + i * i) % vocabulary);
  const fields = {
    inputs: NdArray.from(tokens, [batch, length], "i32"),
    labels: NdArray.from(
      tokens.map((token) => (token * 3 + 1) % vocabulary),
      [batch, length],
      "i32",
    ),
  };
  const router = { width: 4, numExperts: 4 };
  const gates = {
    "balancing bias": balancingBiasGate({ ...router, numChoices: 2, updateRate: 0.1 }),
    switch: switchGate({ ...router, losses: [zLoss({ coefficient: 0.5 })] }),
    "switch with a balance loss": switchGate({ ...router, losses: [balanceLoss({ coefficient: 2 })] }),
    "sigmoid with losses of all kinds": sigmoidGate({
      ...router,
      numChoices: 2,
      losses: [
        balanceLoss({ coefficient: 1 }),
        balanceLoss({ coefficient: 2, choices: "first" }),
        importanceLoadLoss({ coefficient: 3 }),
        zLoss({ coefficient: 0.1 }),
      ],
    }),
  };
  const withGate = (gate: unknown): Problem => {
    const layer = moeLayer({
      gate: gate as ReturnType<typeof switchGate>,
      experts: geluExperts({ width: 4, hidden: 5 }),
      capacity: capacityByMaximum(),
      axis: "expert",
      tokenAxes: ["data"],
    });
    const experts = { every: 1, layer: layer as never, sharding: layer.sharding };
    const sizes = { vocabulary, contextLength: length, width: 4, numLayers: 2, numHeads: 2, hidden: 6 };
    return { model: gpt({ ...sizes, experts }) as AnyModel, fields };
  };
  /** Fields that a job with a mesh requires. `model` describes the model above. */
  const named = {
    data: { kind: "moby-dick", window: length },
    model: { kind: "gpt", layers: 2, heads: 2, width: 4, experts: { count: 4 } },
  };
  test.each(Object.entries(gates))("does not depend on the split of the batch: %s", (_, gate) => {
    const onMesh: Split = { ranks: 2, accumulate: 2, mesh: { expert: 2 } };
    for (const [i, split] of examples([splits[4]!, splits[3]!, onMesh], [...splits, onMesh]).entries()) {
      const settings = i === 0 ? { ...named, overlap: "dear" } : named;
      const [ofParts, ofWhole] = [stepped(withGate(gate), split, settings), stepped(withGate(gate), whole, named)];
      // The greatest load is computed per rank and part, because each part has its own slots. On a mesh, each rank has
      // its own experts.
      const comparable = (of: typeof ofParts): typeof ofParts =>
        new Map([...of].filter(([path]) => !/greatestLoad|duplicationRate|experts\.experts/.test(path)));
      expectSame(comparable(ofParts), comparable(ofWhole), 1e-5);
    }
  });

  test.each(["adamw", "muon", "shampoo", "soap", "lars", "lamb"])(
    "with %s a rank updates its experts like one rank with all of them",
    (kind) => {
      const settings = { ...named, optimizer: { kind, weightDecay: 0.1 }, learningRate: { peak: 0.02 }, clipNorm: 0.5 };
      const of = (split: Split): ReadonlyMap<string, readonly number[]> => {
        const all = stepped(withGate(gates.switch), split, settings);
        // In directions without a gradient, SOAP's basis is arbitrary, and its updates are dominated by rounding.
        const compared = kind === "soap" ? /^loss|moments\..*experts\.experts/ : /^(params|optimizer)/;
        return new Map([...all].filter(([path]) => compared.test(path)));
      };
      const ofWhole = of(whole);
      const [twoRanks, fourRanks]: Split[] = [
        { ranks: 2, accumulate: 1, mesh: { expert: 2 } },
        { ranks: 4, accumulate: 2, mesh: { expert: 2 } },
      ];
      for (const split of examples([fourRanks!], [twoRanks!, fourRanks!])) {
        const onMesh = of(split);
        // Rank 0 has the first experts, which are the first values of each stacked tensor.
        const first = new Map(
          [...onMesh].map(([path, { length: count }]) => [path, (ofWhole.get(path) ?? []).slice(0, count)]),
        );
        expect(
          [...onMesh].filter(([path, values]) => values.length < ofWhole.get(path)!.length).length,
        ).toBeGreaterThan(3);
        expectSame(onMesh, first, 1e-4);
      }
    },
  );
});
