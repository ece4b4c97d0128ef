import type { Aggregator } from "@skein/compressors";
import { checkJob, jobJsonSchema } from "@skein/job/node";
import { mlp, type Model } from "@skein/models";
import { type Tensor, trace } from "@skein/tensor-core";
import { optimize, validateGraph } from "@skein/tensor-core/backend";
import { describe, expect, test } from "vitest";
import { buildParts, stateSpecs, stepKindAt } from "../step/train-state.ts";
import { trainStep } from "../step/train-step.ts";

const jobOf = (compression: object, more: object = {}): object => ({
  name: "names",
  ranks: 4,
  batch: 8,
  steps: 20,
  data: { kind: "mnist" },
  model: { kind: "mlp", hidden: [24] },
  optimizer: { kind: "sgd" },
  learningRate: { peak: 0.1 },
  compression,
  ...more,
});

/** Required options of each kind of compression. */
const needed: { readonly [kind: string]: object } = {
  "hierarchical-top-k": { ranksPerHost: 2 },
  threshold: { threshold: 0.01 },
};

const kinds = (
  jobJsonSchema() as {
    properties: { compression: { oneOf: { properties: { kind: { const?: string; enum?: string[] } } }[] } };
  }
).properties.compression.oneOf
  .flatMap(({ properties: { kind } }) => kind.enum ?? [kind.const!])
  .filter((kind) => kind !== "module" && kind !== "program"); // user code exchanges anything

const partsOf = (job: object): ReturnType<typeof buildParts> =>
  buildParts({
    job: checkJob(job, { file: "job.yaml" }),
    model: mlp({ sizes: [784, 24, 10] }) as Model,
    totalSteps: 20,
    train: { fields: {} },
  });

/** A collective of a traced step, such as "all-reduce:max f32[4]", and the last name of its scope. */
interface StepCollective {
  readonly text: string;
  readonly scope: string;
}

/** Returns the collectives of a step, with their operands, in the order in which they start. */
const collectivesOf = (job: object, step: number): StepCollective[] => {
  const parts = partsOf(job);
  const batch = { inputs: { dtype: "f32", shape: [2, 28, 28, 1] }, labels: { dtype: "i32", shape: [2] } };
  const traced = trace(
    trainStep(parts, stepKindAt(parts, step)) as unknown as (...args: Tensor[]) => unknown,
    [stateSpecs(parts), batch] as never,
    { mesh: parts.mesh },
  );
  validateGraph(traced.graph);
  const { nodes } = optimize(traced.graph);
  return nodes
    .filter(({ op }) => op === "collective-start")
    .map(({ params: { collective, reduction }, inputs: [operand], scope }) => {
      const { dtype, shape } = nodes[operand!.node]!.specs[operand!.output]!;
      return {
        text: `${String(collective)}${reduction === "max" ? ":max" : ""} ${dtype}[${shape.join(",")}]`,
        scope: scope.split("/").at(-1)!,
      };
    });
};

const exchanged = (job: object, step = 0): string[] =>
  collectivesOf(job, step)
    .filter(({ scope }) => scope.startsWith("exchange-"))
    .map(({ text }) => text)
    .toSorted();

/**
 * Expected collectives for each kind of compression, on four ranks, for 19,090 gradients in four tensors (784 × 24, 24,
 * 24 × 10, 10) in one bucket: k = 190 entries, blocks of the default sizes, shards of 4,773 entries (150 words of
 * bits), and rank-4 factors.
 */
const exchangedBy: { readonly [kind: string]: readonly string[] } = {
  identity: ["all-reduce f32[19090]"],
  "top-k": ["all-gather u32[190,2]"],
  "random-k": ["all-reduce f32[190]"],
  "gaussian-k": ["ragged-all-gather u32[254,2]"], // capacity of 4k/3
  "g-top-k": ["send-receive u32[190,2]", "send-receive u32[190,2]"],
  "ok-top-k": [
    ...Array.from({ length: 4 }, () => "all-reduce i32[256]"),
    "all-gather i32[1]",
    "ragged-all-gather u32[190,2]",
    "ragged-all-to-all u32[760,2]",
  ].toSorted(),
  "ms-top-k": ["all-gather u32[190,2]"],
  // with two ranks per host
  "hierarchical-top-k": ["all-gather f32[9545]", "all-gather u32[95,2]", "reduce-scatter f32[19090]"],
  threshold: ["ragged-all-gather u32[1909,2]"],
  dgc: ["all-gather u32[190,2]"],
  ef21: ["all-gather u32[190,2]"],
  // a tenth of the entries of each tensor, because there is no plan
  lags: ["all-gather u32[1,2]", "all-gather u32[1881,2]", "all-gather u32[2,2]", "all-gather u32[24,2]"],
  "majority-vote": ["all-gather u32[1,151]", "all-to-all u32[4,151]"],
  "scaled-sign": ["all-gather u32[598]"],
  "one-bit": ["all-gather u32[673]"],
  qsgd: ["all-gather f32[150,1]", "all-gather u8[150,128]"],
  "tern-grad": ["all-gather u32[4,150]", "all-reduce:max f32[4]", "all-to-all u32[4,2,150]"],
  "eight-bit": ["all-gather f32[75,1]", "all-gather u8[75,255]"],
  agoq: ["all-gather f32[1,19,1]", "all-gather u8[1,19,252]", "all-to-all f32[4,19,1]", "all-to-all u8[4,19,252]"],
  "power-sgd": ["all-reduce f32[3410]", "all-reduce f32[96]"], // 24 × 10 is sent whole: factors would save too little
  "acp-sgd": ["all-reduce f32[3266]"],
};

/** Expected collectives of a step with DeAR that run during the forward pass, for each kind of compression. */
const carriedBy: { readonly [kind: string]: readonly string[] } = {
  identity: ["all-gather f32[4773]"],
  "tern-grad": ["all-gather u32[4,150]"],
  agoq: ["all-gather f32[1,19,1]", "all-gather u8[1,19,252]"],
};

describe("every compression that a job file may name", () => {
  test("is in the table", () => expect(kinds.toSorted()).toEqual(Object.keys(exchangedBy).toSorted()));

  test.each(kinds)("%s exchanges its expected messages, with each overlap that the job allows", (kind) => {
    const compression = { kind, ...needed[kind] };
    const buckets = kind === "lags" ? { buckets: { kind: "per-tensor" } } : {};
    const wanted = exchangedBy[kind]!;
    expect(exchanged(jobOf(compression, buckets))).toEqual(wanted);
    expect(exchanged(jobOf(compression, { ...buckets, overlap: "none" }))).toEqual(wanted);
    // Momentum changes the contents of the messages, but not the collectives.
    if (kind !== "identity") expect(exchanged(jobOf({ ...compression, momentum: 0.5 }, buckets))).toEqual(wanted);
    if (kind === "acp-sgd") {
      // the other factors, 24 and 10 columns of rank 4, and the vectors
      expect(exchanged(jobOf(compression), 1)).toEqual(["all-reduce f32[170]"]);
      return;
    }
    const deferred = jobOf(compression, { ...buckets, overlap: "dear" });
    expect(exchanged(deferred)).toEqual(
      kind === "identity" ? ["all-gather f32[4773]", "reduce-scatter f32[19092]"] : wanted,
    );
    const all = collectivesOf(deferred, 1);
    const forwardEnds = all.findIndex(({ scope }) => scope === "mean-loss");
    expect(
      all
        .slice(0, forwardEnds)
        .map(({ text }) => text)
        .toSorted(),
    ).toEqual(carriedBy[kind] ?? []);
    // Flags of non-finite gradients, one per tensor.
    expect(all.filter(({ scope }) => scope === "update").map(({ text }) => text)).toEqual(["all-reduce i32[4]"]);
  });
});

test("with DeAR, fixed-size buckets are filled in the order of the forward pass", () => {
  const bucketsOf = (more: object): unknown => partsOf(jobOf({ kind: "identity" }, more)).buckets;
  const [stem, head] = [
    ["layers.0.weight", "layers.0.bias"],
    ["layers.1.weight", "layers.1.bias"],
  ];
  for (const buckets of [
    { kind: "fixed-size", bytes: 76_000 },
    { kind: "tuned", minBytes: 76_000, maxBytes: 76_000 },
  ]) {
    // The tensors have 75,264 + 96 + 960 + 40 bytes, so with DeAR one tensor of the small layer has a separate bucket.
    expect(bucketsOf({ buckets })).toEqual([head, stem]);
    expect(bucketsOf({ buckets, overlap: "dear" })).toEqual([["layers.1.weight"], ["layers.1.bias", ...stem!]]);
  }
});

test("warm-up, densities and cycles follow each other", () => {
  const compression = {
    kind: "top-k",
    warmupSteps: 2,
    densityWarmup: { densities: [0.5, 0.25], stepsEach: 3 },
    density: 0.01,
  };
  const parts = partsOf(jobOf(compression));
  const at = (step: number): string => parts.compressorAt(step).name!;
  expect([0, 1, 2, 4, 5, 7, 8, 19].map(at)).toEqual([
    "dense",
    "dense",
    ...[0.5, 0.5, 0.25, 0.25, 0.01, 0.01].map((density) => `top-k ${density} with error feedback`),
  ]);
  const turns = partsOf(jobOf({ kind: "acp-sgd", warmupSteps: 1 }));
  const names = [0, 1, 2, 3, 4].map((step) => turns.compressorAt(step));
  expect(names[0]!.name).toBe("dense");
  expect(names[1]).toBe(names[3]);
  expect(names[2]).toBe(names[4]);
  expect(names[1]).not.toBe(names[2]);
});

test.each(["top-k", "random-k", "ms-top-k"])("%s quantizes its values if the job asks for it", (kind) => {
  const nameOf = (values: object): string => partsOf(jobOf({ kind, density: 0.25, ...values })).compressorAt(0).name!;
  const plain = nameOf({}).replace(" with error feedback", "");
  expect(nameOf({ values: { kind: "eight-bit" } })).toBe(`${plain}, then 8-bit with error feedback`);
  expect(nameOf({ values: { kind: "qsgd", levels: 7 } })).toMatch(`${plain}, then QSGD 7`);
  const gathered = (values: object): number =>
    exchanged(jobOf({ kind, density: 0.25, ...values })).filter((name) => name.startsWith("all-gather")).length;
  expect(gathered({ values: { kind: "eight-bit", blockSize: 64 } })).toBeGreaterThan(gathered({})); // codes and scales
});

test("TernGrad clips at 2.5 standard deviations by default, and has one scale per tensor", () => {
  const aggregator = (more: object): Aggregator => partsOf(jobOf({ kind: "tern-grad", ...more })).compressorAt(0);
  // Without clipping, the aggregator is unbiased.
  expect([{}, { clip: 2.5 }, { clip: 4 }, { clip: 0 }].map((more) => aggregator(more).biased)).toEqual([
    true,
    true,
    true,
    false,
  ]);
  expect(exchanged(jobOf({ kind: "tern-grad" }))).toContain("all-reduce:max f32[4]");
});

test("momentum also applies to dense steps and dense tensors", () => {
  const compression = { kind: "one-bit", warmupSteps: 2, denseVectors: true, momentum: 0.9 };
  const { compressorAt } = partsOf(jobOf(compression));
  expect(compressorAt(1).name).toBe("dense with momentum");
  expect(compressorAt(2).name).toMatch(/with momentum$/);
  expect(compressorAt(2).name).not.toMatch(/with momentum./);
});

test("small tensors and vectors are sent dense if the job asks for it", () => {
  const sent = (more: object): string[] => exchanged(jobOf({ kind: "top-k", density: 0.1, ...more }));
  expect(sent({})).toEqual(["all-gather u32[1909,2]"]);
  expect(sent({ denseVectors: true })).toEqual(["all-gather u32[1905,2]", "all-reduce f32[34]"]);
  expect(sent({ denseBelow: 1000 })).toEqual(["all-gather u32[1881,2]", "all-reduce f32[274]"]);
});
