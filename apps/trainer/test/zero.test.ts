import { cpSync } from "node:fs";
import { join } from "node:path";
import { specsText } from "@skein/checkpoints/node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readJob } from "../src/job-file/load-job.ts";
import { prepare } from "../src/preparation/prepare.ts";
import { checkpointFiles, jobFolder, skeinTrain } from "./cli.ts";
import { expectCloseLosses } from "./run-ends.ts";
import { runSoundly, settings, smallGptJob } from "./small-gpt.ts";

let folder: string;
let remove: () => void;
beforeAll(() => ({ folder, remove } = jobFolder()));
afterAll(() => remove());

const gpt = "model={kind: gpt, layers: 2, heads: 2, width: 16}";
const dropless =
  "model={kind: gpt, layers: 1, heads: 2, width: 16, experts: {count: 4, capacity: all, every: 1, gate: sigmoid}}";
const plain = smallGptJob(24).concat("replicas.checkEverySteps=2");
const steps = 6;
const longer = 9;

const run = (...args: readonly string[]): Promise<void> => runSoundly(folder, ...args);
const train = (output: string, own: readonly string[], ...args: string[]): Promise<void> =>
  run("run", "job.yaml", "--output", output, "--steps", `${steps}`, ...settings([...plain, ...own]), ...args);
/** Returns the checkpoint files of a run. */
const savedBy = (output: string): ReturnType<typeof checkpointFiles> => checkpointFiles(join(folder, output), steps);
const namesBy = (output: string): string[] => savedBy(output).map(([name]) => name);
const expectClose = (output: string, other: string, tolerance = 1e-5): void =>
  expectCloseLosses(join(folder, output), join(folder, other), tolerance);

test("three ranks that shard the optimizer's state train to the same result as without, save the whole state, and resume", async () => {
  await train("whole", [gpt, "ranks=3"]);
  await train("shared", [gpt, "ranks=3", "zero=1"]);
  expectClose("shared", "whole");
  expect(namesBy("shared")).toEqual(namesBy("whole"));
  expect(savedBy("shared").map(([, { length }]) => length)).toEqual(savedBy("whole").map(([, { length }]) => length));
  await train("halves", [gpt, "ranks=3", "zero=1"], "--steps", "4");
  await run("resume", "halves", "--steps", `${steps}`);
  expect(savedBy("halves")).toEqual(savedBy("shared"));
  await train("longer", [gpt, "ranks=3"], "--steps", `${longer}`);
  cpSync(join(folder, "shared"), join(folder, "two"), { recursive: true });
  await run("resume", "two", "--steps", `${longer}`, ...settings(["ranks=2"]));
  expectClose("two", "longer", 1e-3);
});

test.each([
  ["ranks that share nothing out", ["ranks=3", "zero=1"], ["ranks=2", "zero=0"]],
  ["ranks that share matrices out too", ["ranks=3", "zero=1"], ["ranks=4", "mesh.tensor=2"]],
  ["ranks that begin to share it out", ["ranks=2", "mesh.tensor=2"], ["ranks=4", "mesh.tensor=2", "zero=1"]],
])("a checkpoint is read by %s", { tags: "full" }, async (name, before, after) => {
  const output = name.replaceAll(" ", "-");
  await train(output, [gpt, ...before]);
  await train(`${output}-alone`, [gpt, "ranks=1"], "--steps", `${longer}`);
  await run("resume", output, "--steps", `${longer}`, ...settings(after));
  expectClose(output, `${output}-alone`, 1e-3);
});

test.each([
  ["tensor", gpt, ["ranks=4", "mesh.tensor=2"]],
  ["experts", dropless, ["ranks=4", "mesh.expert=2"]],
  ["dear", gpt, ["ranks=2", "overlap=dear"]],
  ["top-k", gpt, ["ranks=2", "compression={kind: top-k, density: 0.1}", "optimizer={kind: sgd}"]],
  ["momentum", gpt, ["ranks=2", "optimizer={kind: momentum}"]],
  ["mixed-f16", gpt, ["ranks=2", "precision={kind: mixed-f16}"]],
  ["tcp", gpt, ["ranks=2", "transport=tcp"]],
])("with %s too, it gives the same result and the same files", { tags: "full" }, async (name, model, own) => {
  await train(`${name}-whole`, [model, ...own]);
  await train(`${name}-shared`, [model, ...own, "zero=1"]);
  expectClose(`${name}-shared`, `${name}-whole`);
  expect(namesBy(`${name}-shared`)).toEqual(namesBy(`${name}-whole`));
});

test("a rank keeps a third of the optimizer's state, and a checkpoint all of it", async () => {
  const prepared = async (zero: 0 | 1) => {
    const values = {
      ranks: 3,
      batch: 321,
      "evaluation.batch": 3,
      zero,
      optimizer: { kind: "adam" },
      compression: { kind: "identity" },
    };
    const overrides = Object.entries(values).map(([path, value]) => ({ path: path.split("."), value, origin: "test" }));
    return prepare(readJob(join(folder, "job.yaml"), overrides));
  };
  const [whole, shared] = [await prepared(0), await prepared(1)];
  expect(specsText(shared.whole)).toBe(specsText(whole.whole));
  expect(shared.modelHash).toBe(whole.modelHash);
  // Adam has two numbers per parameter; the parameters themselves are replicated.
  const kept = (shared.stateBytes - whole.stateBytes / 3) / (whole.stateBytes - whole.stateBytes / 3);
  expect(kept).toBeCloseTo(1 / 3, 2);
});

test.each([
  [
    ["optimizer={kind: muon}", gpt],
    /zero: zero: 1 shards the optimizer state, but muon needs whole parameters; use sgd/,
  ],
  [["zero=2", gpt], /zero/],
])("refuses %j in one line", async (own, message) => {
  const args = ["--steps", "1", ...settings([...plain, "ranks=2", "zero=1", ...own])];
  const { code, stderr } = await skeinTrain(folder, "run", "job.yaml", ...args);
  expect(stderr).toMatch(message);
  expect(code).toBe(2);
});
