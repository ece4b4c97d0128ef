import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { verdictOn } from "../src/run/overfit.ts";
import { disturbed, jobFolder, skeinTrain, start, until } from "./cli.ts";

let folder: string;
let remove: () => void;
beforeEach(() => ({ folder, remove } = jobFolder()));
afterEach(() => remove());

const fast = ["--set", "compression={kind: identity}", "--set", "learningRate.peak=0.02"];

test("a batch is memorized, even if the run was stopped and resumed", async () => {
  const running = start(folder, "run", "job.yaml", "--overfit", "1", "--steps", "120", "--output", "out", ...fast);
  await until(running, () => running.stderr().includes("step   1/120"));
  running.child.kill("SIGINT");
  expect((await disturbed(running)).code).toBe(130);
  const { code, stdout } = await skeinTrain(folder, "resume", "out");
  expect(stdout).toMatch(/samples memorized: the loss of the samples went from 2\.\d+ to \S+, below 1 %/);
  expect(code).toBe(0);
  const { data } = JSON.parse(readFileSync(join(folder, "out/job.json"), "utf8")) as { data: object };
  expect(data).toEqual({ kind: "mnist", trainSamples: 32, judgeBy: "training" });
});

test("a run that does not memorize its samples ends with a line that gives the loss, and with code 2", async () => {
  const { code, stderr } = await skeinTrain(folder, "run", "job.yaml", "--overfit", "2", "--steps", "3", ...fast);
  expect(stderr).toMatch(
    /\nsamples not memorized: the loss of the samples went from 2\.\d+ to \d\.\d+, but a loss below 0\.02/,
  );
  expect(code).toBe(2);
});

test("regression targets are memorized too", { tags: "full" }, async () => {
  const data = `import { arrayRecords } from "@skein/data";
import { NdArray } from "@skein/tensor-core";
const points = (count) => arrayRecords({
  inputs: NdArray.from(Array.from({ length: 2 * count }, (_, i) => Math.sin(i * i)), [count, 2]),
  labels: NdArray.from(Array.from({ length: count }, (_, i) => 5 * Math.cos(i)), [count, 1]),
});
export default () => ({ train: points(24), test: points(8), predicts: "values" });
`;
  const model = `import { dense, initDense } from "@skein/models";
import { full, mean, multiply, splitKey, subtract, sum, tanh } from "@skein/tensor-core";
const apply = ({ first, second }, state, inputs) => [dense(second, tanh(dense(first, inputs))), state];
const squares = (params, { inputs, labels }) => {
  const off = subtract(apply(params, {}, inputs)[0], labels);
  return multiply(off, off);
};
export default () => ({
  init: (key) => {
    const [a, b] = splitKey(key, 2);
    return { params: { first: initDense(a, [2, 32]), second: initDense(b, [32, 1]) }, state: {} };
  },
  apply,
  loss: (params, state, batch) => [mean(squares(params, batch)), state],
  evaluate: (params, state, batch) => ({ lossSum: sum(squares(params, batch)), count: full([], 4) }),
});
`;
  writeFileSync(join(folder, "data.mjs"), data);
  writeFileSync(join(folder, "model.mjs"), model);
  const own = ["data={kind: module, file: data.mjs}", "model={kind: module, file: model.mjs}", "batch=4", "ranks=1"];
  const settings = [...fast, ...own.flatMap((one) => ["--set", one])];
  const run = ["run", "job.yaml", "--overfit", "1", "--steps", "400", ...settings];
  const { code, stdout, stderr } = await skeinTrain(folder, ...run);
  expect(stderr).toContain("the run is evaluated on its training samples");
  expect(stdout).toContain("samples memorized: the loss of the samples went from");
  expect(code).toBe(0);
});

test("more batches than available, or zero, are refused with both numbers", async () => {
  const { code, stderr } = await skeinTrain(folder, "run", "job.yaml", "--overfit", "21");
  expect(stderr).toBe(
    "--overfit 21: 21 batches of 32 are 672 samples, but there are only 640 training samples, which make 20 batches; use at most 20\n",
  );
  expect(code).toBe(2);
  expect((await skeinTrain(folder, "run", "job.yaml", "--overfit", "0")).stderr).toBe(
    '--overfit is "0", but must be a whole number from 1\n',
  );
});

test("the verdict compares with a hundredth of the first loss, which must be above 0", () => {
  expect(verdictOn({ firstLoss: 2, loss: 0.0199, output: "out" })).toContain("samples memorized");
  expect(() => verdictOn({ firstLoss: 2, loss: 0.02, output: "out" })).toThrow("samples not memorized");
  expect(() => verdictOn({ firstLoss: 2, loss: Number.NaN, output: "out" })).toThrow("samples not memorized");
  expect(() => verdictOn({ firstLoss: 0, loss: 0, output: "out" })).toThrow("cannot decide whether");
});
