import { optimize, type Tensor, trace, validateGraph } from "@skein/tensor-core";
import { describe, expect, test } from "vitest";
import { checkJob } from "./config.ts";
import { jobJsonSchema } from "./job-schema.ts";
import { buildParts, stateSpecs } from "./train-state.ts";
import { trainStep } from "./train-step.ts";

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

/** What a kind cannot do without. */
const needed: { readonly [kind: string]: object } = { "hierarchical-top-k": { ranksPerHost: 2 }, threshold: { threshold: 0.01 } };

const kinds = (
  jobJsonSchema() as { properties: { compression: { oneOf: { properties: { kind: { const?: string; enum?: string[] } } }[] } } }
).properties.compression.oneOf.flatMap(({ properties: { kind } }) => kind.enum ?? [kind.const!]);

const partsOf = (job: object): ReturnType<typeof buildParts> => buildParts(checkJob(job, { file: "job.yaml" }), { shape: [28, 28, 1] }, 20);

/** Collectives of a step, with their operands' bytes. */
const collectivesOf = (job: object, step: number): string[] => {
  const parts = partsOf(job);
  const batch = { inputs: { dtype: "f32", shape: [2, 28, 28, 1] }, labels: { dtype: "i32", shape: [2] } };
  const { graph } = trace(
    trainStep(parts, parts.compressorAt(step)) as unknown as (...args: Tensor[]) => unknown,
    [stateSpecs(parts), batch] as never,
    {
      mesh: parts.mesh,
    },
  );
  validateGraph(graph);
  return optimize(graph)
    .nodes.filter(({ op }) => op === "collective-start")
    .map(({ params, inputs }) => `${String(params["collective"])} ${inputs.length}`);
};

describe("every compression that a job file may name", () => {
  test("is in the list", () => expect(kinds.length).toBeGreaterThanOrEqual(19));

  test.each(kinds)("%s makes a step, with each overlap that the job may ask for", (kind) => {
    const compression = { kind, ...needed[kind] };
    const buckets = kind === "lags" ? { buckets: { kind: "per-tensor" } } : {};
    expect(collectivesOf(jobOf(compression, buckets), 0).length).toBeGreaterThan(0);
    expect(collectivesOf(jobOf(compression, { ...buckets, overlap: "none" }), 1).length).toBeGreaterThan(0);
    if (kind !== "identity") {
      const averaged = jobOf({ ...compression, momentum: 0.5 }, buckets);
      expect(collectivesOf(averaged, 0)).toEqual(collectivesOf(jobOf(compression, buckets), 0)); // what is exchanged differs, not how
    }
    if (kind !== "acp-sgd") expect(collectivesOf(jobOf(compression, { ...buckets, overlap: "dear" }), 1).length).toBeGreaterThan(0);
  });
});

test("warm-up, densities and turns follow one another", () => {
  const compression = { kind: "top-k", warmupSteps: 2, densityWarmup: { densities: [0.5, 0.25], stepsEach: 3 }, density: 0.01 };
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

test.each(["top-k", "random-k", "ms-top-k"])("%s has its values compressed further where the job says so", (kind) => {
  const nameOf = (values: object): string => partsOf(jobOf({ kind, density: 0.25, ...values })).compressorAt(0).name!;
  const plain = nameOf({}).replace(" with error feedback", "");
  expect(nameOf({ values: { kind: "eight-bit" } })).toBe(`${plain}, then 8-bit with error feedback`);
  expect(nameOf({ values: { kind: "qsgd", levels: 7 } })).toMatch(`${plain}, then QSGD 7`);
  const gathered = (values: object): number =>
    collectivesOf(jobOf({ kind, density: 0.25, ...values }), 0).filter((name) => name.startsWith("all-gather")).length;
  expect(gathered({ values: { kind: "eight-bit", blockSize: 64 } })).toBeGreaterThan(gathered({})); // codes and scales
});

test("momentum is outermost, so that dense steps and dense tensors follow the running mean, too", () => {
  const compression = { kind: "one-bit", warmupSteps: 2, denseVectors: true, momentum: 0.9 };
  const { compressorAt } = partsOf(jobOf(compression));
  expect(compressorAt(1).name).toBe("dense with momentum");
  expect(compressorAt(2).name).toMatch(/with momentum$/);
  expect(compressorAt(2).name).not.toMatch(/with momentum./);
});

test("small tensors and vectors travel dense where the job says so", () => {
  const sent = (more: object): string[] => collectivesOf(jobOf({ kind: "top-k", density: 0.1, ...more }), 0);
  const dense = (names: readonly string[]): number => names.filter((name) => name.startsWith("all-reduce")).length;
  // The mean of the loss is an all-reduce, too.
  expect(dense(sent({}))).toBe(1);
  expect(dense(sent({ denseVectors: true }))).toBe(2);
  expect(dense(sent({ denseBelow: 1000 }))).toBe(2);
});
