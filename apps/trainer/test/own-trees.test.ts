import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InferenceSession, Tensor as OnnxTensor } from "onnxruntime-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { train, type TrainJob } from "../src/index.ts";
import { checkpointBytes, metricLines, skeinTrain, stepLosses } from "./cli.ts";
import { data } from "./points.ts";

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), "skein-trees-"))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const own = (name: string) =>
  ({ kind: "module", file: new URL("./own-trees.ts", import.meta.url), export: name }) as const;

const job = {
  seed: 5,
  backend: "cpu",
  batch: 24,
  steps: 6,
  evaluation: { batch: 16 },
  optimizer: { kind: "adam" },
  learningRate: { peak: 0.02 },
} as const;

const finalLosses = (output: string): unknown =>
  metricLines(output)
    .filter(({ type }) => type === "evaluation")
    .map(({ loss }) => loss);

const givesTheSameBits = async (ranks: number): Promise<void> => {
  const [ours, mine] = [join(folder, `ours-${ranks}`), join(folder, `mine-${ranks}`)];
  const shared = { ...job, ranks, accumulate: ranks === 2 ? 3 : undefined } as const;
  await train({ ...shared, data, model: { kind: "mlp", hidden: [16] } }, { output: ours });
  const { summary } = await train(
    { ...shared, data: own("renamedData"), model: own("renamedModel") },
    { output: mine },
  );
  expect(stepLosses(mine)).toEqual(stepLosses(ours));
  expect(finalLosses(mine)).toEqual(finalLosses(ours));
  expect(checkpointBytes(mine, 6)).toEqual(checkpointBytes(ours, 6));
  expect(summary!.metrics!["right"]).toBe(metricLines(ours).findLast(({ type }) => type === "evaluation")!["accuracy"]);
};

test("the same samples under other names and with a custom loss give the same bits", () => givesTheSameBits(2));
test.each([1, 4])("so they do on %i ranks", { tags: "full" }, givesTheSameBits);

const towers = { ...job, ranks: 2, data: own("pairData"), model: own("towers"), metrics: own("lengths") } as const;

test("two towers learn from pairs, resume after a stop with the same bits, and export to an ONNX model of several inputs", {
  tags: "full",
}, async () => {
  const [whole, parts] = [join(folder, "whole"), join(folder, "parts")];
  const { summary } = await train({ ...towers, steps: 40 }, { output: whole });
  const losses = stepLosses(whole);
  expect(losses.at(-1)).toBeLessThan(0.7 * losses[0]!);
  expect(summary!.metrics).toMatchObject({ found: expect.any(Number), meanLength: expect.any(Number), kinds: 1 });
  expect(summary!.metrics!["found"]).toBeGreaterThan(0.3);
  expect(summary!.testAccuracy).toBeUndefined();

  await train({ ...towers, steps: 20 }, { output: parts });
  await train({ ...towers, steps: 40 }, { output: parts, resume: true });
  expect(stepLosses(parts)).toEqual(losses);
  expect(checkpointBytes(parts, 40)).toEqual(checkpointBytes(whole, 40));

  const file = join(folder, "towers.onnx");
  const exported = await skeinTrain(folder, "export", whole, "--format", "onnx", "--output", file);
  expect(exported.stderr).toBe("");
  expect(exported.code).toBe(0);
  const session = await InferenceSession.create(file);
  expect([...session.inputNames].sort()).toEqual(["inputs.document", "inputs.query.kind", "inputs.query.vector"]);
  expect([...session.outputNames].sort()).toEqual(["document", "query"]);
  const wave = Float32Array.from({ length: 18 }, (_, i) => Math.sin(i));
  const { query } = await session.run({
    "inputs.document": new OnnxTensor("float32", wave, [3, 6]),
    "inputs.query.vector": new OnnxTensor("float32", wave, [3, 6]),
    "inputs.query.kind": new OnnxTensor("int32", Int32Array.from([0, 1, 2]), [3]),
  });
  expect(query!.dims).toEqual([3, 8]);
  await session.release();
});

test("an autoencoder learns from samples without labels", async () => {
  const output = join(folder, "autoencoder");
  const { summary } = await train(
    { ...job, steps: 60, ranks: 2, data: own("plainData"), model: own("autoencoder") },
    { output },
  );
  expect(summary!.testLoss).toBeLessThan(0.4 * stepLosses(output)[0]!);
  expect(readFileSync(join(output, "metrics.jsonl"), "utf8")).not.toContain("accuracy");
});

test.each<[Partial<TrainJob>, RegExp]>([
  [
    { model: { kind: "mlp" } },
    /^model\.kind: a mlp needs samples with inputs and labels, one tensor each, but these samples are inputs\.document f32\[6\], inputs\.query\.kind i32\[\], .*\{kind: module\}/,
  ],
  [
    { model: own("autoencoder") },
    /^model\.file \S+: samples have no tensor "numbers": they have inputs\.document .*own-trees\.ts:\d+/,
  ],
  [{ model: own("renamedModel"), data: own("plainData") }, /place\.0.*numbers f32\[5\]/],
])("features without support for trees report it in one line: %#", async (change, line) => {
  await expect(train({ ...towers, ...change } as TrainJob, { output: join(folder, "never") })).rejects.toThrow(line);
});
