import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { train } from "skein-train";

const mean = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0) / numbers.length;

test("reduces the loss within fifty steps", async () => {
  const folder = mkdtempSync(join(tmpdir(), "text-"));
  const losses: number[] = [];
  try {
    await train(
      {
        ranks: 2,
        batch: 8,
        steps: 50,
        data: { kind: "text", file: fileURLToPath(new URL("text.txt", import.meta.url)), window: 32, testSamples: 8 },
        model: { kind: "gpt", layers: 1, heads: 2, width: 32 },
        optimizer: { kind: "adam" },
        learningRate: { peak: 0.01 },
        evaluation: { batch: 8 },
      },
      { output: join(folder, "run"), onStep: ({ loss }) => losses.push(loss) },
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
  const [before, after] = [mean(losses.slice(0, 5)), mean(losses.slice(-5))];
  assert.ok(after < 0.8 * before, `from ${before} to ${after}`);
});
