import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { train } from "skein-train";

const mean = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0) / numbers.length;

test("reduces the loss within fifty steps", async () => {
  const folder = mkdtempSync(join(tmpdir(), "digits-"));
  const losses: number[] = [];
  try {
    await train(
      {
        ranks: 2,
        batch: 32,
        steps: 50,
        data: { kind: "mnist", trainSamples: 1600, testSamples: 200 },
        model: { kind: "module", file: new URL("model.ts", import.meta.url), options: { channels: [8, 16] } },
        optimizer: { kind: "adam" },
        learningRate: { peak: 0.003 },
      },
      { output: join(folder, "run"), onStep: ({ loss }) => losses.push(loss) },
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
  const [before, after] = [mean(losses.slice(0, 5)), mean(losses.slice(-5))];
  assert.ok(after < 0.7 * before, `from ${before} to ${after}`);
});
