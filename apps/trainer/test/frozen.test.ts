import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkpointsFolder, folderName } from "@skein/checkpoints/node";
import { mlp, type MlpParams } from "@skein/models";
import { mapTree, type NdArray, readSafetensors, stopGradient, type Tensor } from "@skein/tensor-core";
import { leavesByPath } from "@skein/tensor-core/backend";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { train, type TrainJob } from "../src/index.ts";
import { checkpointBytes, stepLosses } from "./cli.ts";
import { data } from "./points.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-frozen-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const model = mlp({ sizes: [2, 6, 8, 2] });
const freeze = ["layers.{0..1}", "!layers.1.bias"];
const frozen = ["layers.0.bias", "layers.0.weight", "layers.1.weight"];
const trained = ["layers.1.bias", "layers.2.bias", "layers.2.weight"];

const job = {
  data,
  model,
  seed: 5,
  ranks: 2,
  backend: "cpu",
  batch: 60,
  steps: 4,
  optimizer: { kind: "adamw", weightDecay: 0.1 },
  learningRate: { peak: 0.02 },
  freeze,
  checkpoint: { everySteps: 2 },
} as const;

const run = (name: string, settings: Partial<TrainJob<MlpParams>> = {}) =>
  train({ ...job, ...settings } as TrainJob<MlpParams>, { output: join(folder, name) });

const savedOf = (name: string, step: number): ReadonlyMap<string, NdArray> =>
  readSafetensors(readFileSync(join(checkpointsFolder(join(folder, name)), folderName(step), "shared.safetensors")))
    .tensors;

describe("frozen parameters", () => {
  const expectKept = async (_: string, settings: Partial<TrainJob<MlpParams>>): Promise<void> => {
    const done = await run("all", { ...settings, checkpoint: { everySteps: 1, keep: 9 } });
    const [first, last] = [savedOf("all", 1), savedOf("all", 4)];
    const bytesOf = (saved: ReadonlyMap<string, NdArray>, path: string) =>
      Buffer.from(saved.get(`params.${path}`)!.bytes());
    for (const path of frozen) expect(bytesOf(last, path)).toEqual(bytesOf(first, path));
    for (const path of trained) expect(bytesOf(last, path)).not.toEqual(bytesOf(first, path));
    // optimizer state exists only for trained parameters
    const kept = [...last.keys()].filter((path) => !path.startsWith("params."));
    expect(kept.filter((path) => frozen.some((own) => path.endsWith(`.${own}`)))).toEqual([]);
    expect(kept.some((path) => path.endsWith(`.${trained[0]}`))).toBe(true);
    // the program receives all parameters of the model
    const parameters = leavesByPath<NdArray>(done.parameters());
    const { average } = settings;
    for (const path of [...frozen, ...trained]) {
      const name = average !== undefined && trained.includes(path) ? `average.${path}` : `params.${path}`;
      expect(parameters.get(path)!.toNumbers()).toEqual(last.get(name)!.toNumbers());
    }
  };
  test.each<[string, Partial<TrainJob<MlpParams>>]>([
    [
      "in parts, with a share of the optimizer's state, a mean and a compressor",
      {
        accumulate: 3,
        zero: 1,
        average: { decay: 0.5 },
        clipNorm: 0.1,
        compression: { kind: "top-k", density: 0.5 } as never,
      },
    ],
    ["a step late, with a mean", { overlap: "dear", average: { decay: 0.5 }, optimizer: { kind: "lars" } }],
  ])("keep every bit, while all others change: %s", expectKept);
  test.each<[string, Partial<TrainJob<MlpParams>>]>([
    ["as they are", {}],
    ["with curvature", { optimizer: { kind: "kfac", factorEvery: 1, inverseEvery: 1 } }],
    ["orthogonal", { optimizer: { kind: "muon" }, compression: { kind: "power-sgd", rank: 1 } as never }],
    ["in bases of its own, after the backward pass", { optimizer: { kind: "soap" }, overlap: "none" }],
    ["with planned buckets", { buckets: { kind: "mg-wfbp" } as never, overlap: "dear" }],
    ["with buckets that are sought", { buckets: { kind: "tuned", trials: 2, stepsEach: 2, minBytes: 64 } as never }],
  ])("keep every bit, while all others change: %s", { tags: "full" }, expectKept);

  test("equal parameters with zero gradients, without their exchanged bytes", async () => {
    const plain = { optimizer: { kind: "sgd" } } as const;
    const still = (params: MlpParams): MlpParams =>
      mapTree(params, (leaf: Tensor, path) => (frozen.includes(path) ? stopGradient(leaf) : leaf)) as MlpParams;
    const stopped: typeof model = { ...model, loss: (params, ...rest) => model.loss(still(params), ...rest) };
    const own = await run("own", plain);
    const other = await run("other", { ...plain, freeze: undefined, model: stopped });
    expect(stepLosses(join(folder, "own"))).toEqual(stepLosses(join(folder, "other")));
    for (const [path, array] of savedOf("own", 4))
      expect(savedOf("other", 4).get(path)!.bytes()).toEqual(array.bytes());
    expect(own.summary!.testLoss).toBe(other.summary!.testLoss);
    // 2 (P − 1) / P · 4 bytes per number and step
    const numbers = 2 * 6 + 6 + 6 * 8;
    expect(other.summary!.bytesSentPerRank - own.summary!.bytesSentPerRank).toBe(4 * 4 * numbers);
    expect(other.summary!.denseBytesPerRank - own.summary!.denseBytesPerRank).toBe(4 * 4 * numbers);
  });

  test("resume with a run to the same bits, and are used in evaluation", async () => {
    const average = { average: { decay: 0.9 } };
    const whole = await run("whole", average);
    await run("parts", { ...average, steps: 2 });
    const again = await train({ ...job, ...average } as TrainJob<MlpParams>, {
      output: join(folder, "parts"),
      resume: true,
    });
    expect(checkpointBytes(join(folder, "parts"), 4)).toEqual(checkpointBytes(join(folder, "whole"), 4));
    expect(again.summary!.testLoss).toBe(whole.summary!.testLoss);
    // an optimizer cannot know which properties of frozen parameters it would need
    await expect(
      train({ ...job, ...average, freeze: undefined, steps: 6 } as TrainJob<MlpParams>, {
        output: join(folder, "parts"),
        resume: true,
      }),
    ).rejects.toThrow("layers.0.bias");
  });

  test("may not be all, and must exist", async () => {
    await expect(run("never", { freeze: ["layers"] })).rejects.toThrow(
      'all 6 parameters of the model are frozen, so nothing is left to train; unfreeze some, as in freeze: ["**", "!layers.2.weight"]',
    );
    await expect(run("never", { freeze: ["!head"] })).rejects.toThrow('freeze[0]: "head" matches none of the model');
    await expect(run("never", { freeze: ["!layers.1"] })).rejects.toThrow(
      "unfreezes parameters that no earlier pattern",
    );
  });
});
