import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { train } from "skein-train";
import loadData from "./data.ts";

const files = { train: "points/train.csv", test: "points/test.csv" };
const mean = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0) / numbers.length;

test("the files hold points of three classes", async () => {
  const { train, test, classes } = await loadData(files);
  assert.deepEqual(train.fields["inputs"]?.shape, [2]);
  assert.equal(classes, 3);
  assert.ok(train.count > test.count);
});

test("the loss falls within a hundred steps", async () => {
  const folder = mkdtempSync(join(tmpdir(), "spirals-"));
  const losses: number[] = [];
  try {
    await train(
      {
        ranks: 2,
        batch: 50,
        steps: 100,
        data: { kind: "module", file: new URL("data.ts", import.meta.url), options: files },
        model: { kind: "module", file: new URL("model.ts", import.meta.url), options: { hidden: [48, 48] } },
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
