import { parseJob, parseOverride } from "@skein/job/node";
import { buildParts, stackDimsOf, stateSpecs, taskOf } from "@skein/step/node";
import { flattenTree, leafPaths, type TensorSpec } from "@skein/tensor-core";
import { describe, expect, test } from "vitest";
import { buildOwnModel, type OwnModelJob } from "../src/preparation/build-model.ts";

const text = `
name: small
seed: 1
ranks: 1
batch: 8
steps: 1
data: { kind: moby-dick, window: 8, trainSamples: 400, testSamples: 30 }
model: { kind: gpt, layers: 2, heads: 2, width: 8, experts: { count: 4, topK: 2, hidden: 6, dispatch: ragged } }
optimizer: { kind: muon }
learningRate: { peak: 0.01 }
compression: { kind: identity }
evaluation: { batch: 8 }
`;

/** Returns the shapes of the training state of a job on text, by path. */
const stateOf = (...set: string[]): ReadonlyMap<string, readonly number[]> => {
  const job = parseJob(
    text,
    "job.yaml",
    set.map((value) => parseOverride(value)),
  );
  const tokens = { dtype: "i32", shape: [8] } as const;
  const train = { fields: { inputs: tokens, labels: tokens } };
  const task = taskOf({ train, predicts: "tokens", classes: 32 } as never);
  const model = buildOwnModel({ ...job, model: job.model as OwnModelJob }, task);
  const parts = buildParts({ job, model, totalSteps: 1, train });
  const specs = stateSpecs(parts) as never as Record<string, unknown>;
  const { leaves } = flattenTree<TensorSpec>(specs);
  return new Map(leafPaths(specs).map((path, i) => [path, leaves[i]!.shape]));
};

describe("experts of a layer are separate matrices", () => {
  test.each([
    ["model.experts.dispatch=ragged"],
    ["model.experts.dispatch=dense"],
    ["model.experts.activation=swiglu"],
    ["model.experts.gate=expert-choice", "model.experts.dispatch=dense"],
    ["memory.recompute=blocks"],
    ["accumulate=2"],
    ["precision={kind: mixed-f16}"],
    ["freeze=[blocks.0.*]"],
  ])("that muon orthogonalizes one by one, with adam for the gate: %s", (...set) => {
    const paths = [...stateOf(...set).keys()];
    const ofMuon = paths.filter((path) => path.startsWith("optimizer.muon.0.velocity."));
    const ofAdam = paths.filter((path) => path.startsWith("optimizer.adam.0.mean."));
    expect(ofMuon.filter((path) => /experts/.test(path)).length).toBeGreaterThanOrEqual(2);
    expect(ofMuon.filter((path) => /\.gate\./.test(path))).toEqual([]);
    expect(ofAdam.filter((path) => /\.gate\./.test(path)).length).toBeGreaterThan(0);
    expect(ofAdam.filter((path) => /_DF|_FD/.test(path))).toEqual([]);
  });

  test("with separate moments in soap and shampoo", () => {
    const sides = (kind: string): number[][] =>
      [...stateOf(`optimizer={kind: ${kind}}`)].flatMap(([path, shape]) =>
        /moments\.(left|right)\./.test(path) && shape[0] === 4 ? [[...shape]] : [],
      );
    expect(sides("soap")).toContainEqual([4, 8, 8]);
    expect(sides("soap")).toContainEqual([4, 6, 6]);
    expect(sides("shampoo")).toContainEqual([4, 6, 6]);
  });

  test("that a rank must hold whole", () => {
    const trained = { gate: { dtype: "f32", shape: [4, 8] }, up: { dtype: "f32", shape: [2, 8, 6] } } as const;
    const found = { stacks: new Map([["up", 1]]) } as never;
    const of = (sharded: string, dim: number) =>
      stackDimsOf(
        { optimizer: { kind: "muon" } } as never,
        trained,
        (path) => (path === sharded ? [{ axis: "expert", dim }] : []),
        () => found,
      );
    expect(of("up", 0)("up")).toBe(1);
    expect(() => of("up", 1)).toThrow(/muon reads up \[2, 8, 6\] as one matrix, but .* shard its dimension 1/);
    expect(() => of("gate", 0)).toThrow(/muon reads gate \[4, 8\] as one matrix, .*; use adamw, or mesh: {expert: 1}/);
  });
});
