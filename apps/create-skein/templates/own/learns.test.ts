import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { evaluate, NdArray, randomKey, referenceBackend, type Tensor } from "@skein/tensor-core";
import { taskOf, train } from "skein-train";
import loadData from "./data.ts";
import makeModel from "./model.ts";

const files = { train: "points/train.csv", test: "points/test.csv" };
const mean = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0) / numbers.length;

test("reads points of three classes from the files", async () => {
  const { train, test, classes } = await loadData(files);
  assert.deepEqual(train.fields["inputs"]?.shape, [2]);
  assert.equal(classes, 3);
  assert.ok(train.count > test.count);
});

test("computes a score per class, and guesses before training", async () => {
  const model = await makeModel(taskOf(await loadData(files)), { hidden: [8] });
  const untrained = evaluate((key: Tensor, inputs: Tensor, labels: Tensor) => {
    const { params, state } = model.init(key);
    const [scores] = model.apply(params, state, inputs, { train: false });
    const [loss] = model.loss(params, state, { inputs, labels }, { train: true, key });
    return { scores: scores as Tensor, loss };
  }, referenceBackend()); // slow and exact: enough for a few rows
  const points = NdArray.from([
    [0.1, 0.2],
    [-0.3, 0.4],
    [0, 0],
    [0.5, -0.5],
  ]);
  const { scores, loss } = await untrained(randomKey(1), points, NdArray.from([0, 1, 2, 0], [4], "i32"));
  assert.deepEqual(scores.shape, [4, 3]);
  assert.ok(Math.abs(loss.item() - Math.log(3)) < 0.5, `${loss.item()} is far from a guess, ${Math.log(3)}`);
});

test("reduces the loss within a hundred steps, on two ranks", async () => {
  const folder = mkdtempSync(join(tmpdir(), "spirals-"));
  const losses: number[] = [];
  try {
    await train(
      {
        ranks: 2,
        batch: 50,
        steps: 100,
        data: () => loadData(files),
        model: (task) => makeModel(task, { hidden: [48, 48] }),
        optimizer: { kind: "adam" },
        learningRate: { peak: 0.01 },
      },
      { output: join(folder, "run"), onStep: ({ loss }) => losses.push(loss) },
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
  const [before, after] = [mean(losses.slice(0, 10)), mean(losses.slice(-10))];
  assert.ok(after < 0.7 * before, `from ${before} to ${after}`);
});
