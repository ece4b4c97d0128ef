import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { jobFolder, skeinTrain, stepLosses, reportedUpdates } from "./cli.ts";
import { expectSoundTrace } from "./trace-rules.ts";

let folder: string;
let remove: () => void;
beforeAll(() => ({ folder, remove } = jobFolder()));
afterAll(() => remove());

const dense = [
  "--set",
  "compression={kind: identity}",
  "--set",
  "model.hidden=[24, 16]",
  "--set",
  "buckets={kind: per-tensor}",
];

/**
 * Runs the tiny job.
 * @returns parameters, optimizer state and losses at its end.
 */
const run = async (
  output: string,
  ...args: string[]
): Promise<{ readonly saved: Buffer; readonly losses: readonly number[]; readonly stderr: string }> => {
  const { code, stderr } = await skeinTrain(
    folder,
    "run",
    "job.yaml",
    "--output",
    output,
    "--trace",
    `${output}.json`,
    ...args,
  );
  expect(stderr).not.toContain("rank ");
  expect(code).toBe(0);
  expectSoundTrace(join(folder, `${output}.json`), 2);
  return { ...savedBy(output), stderr };
};

const savedBy = (output: string): { readonly saved: Buffer; readonly losses: readonly number[] } => ({
  saved: readFileSync(join(folder, output, "checkpoints/step-00000030/shared.safetensors")),
  losses: stepLosses(join(folder, output)),
});

describe("when and how gradients are exchanged does not change the result", () => {
  let plain: Awaited<ReturnType<typeof run>>;
  beforeAll(async () => {
    plain = await run("plain", ...dense);
    expect(reportedUpdates(join(folder, "plain")).map(({ step }) => step)).toEqual(plain.losses.map((_, i) => i + 1));
  });

  const expectSameLearnt = async (name: string, settings: readonly string[]): Promise<void> => {
    const other = await run(name, ...dense, ...settings.flatMap((setting) => ["--set", setting]));
    expect(other.losses).toEqual(plain.losses);
    expect(reportedUpdates(join(folder, name))).toEqual(reportedUpdates(join(folder, "plain")));
    expect(other.saved.equals(plain.saved)).toBe(true);
  };
  test.each([
    ["in halves", ["overlap=dear"]],
    [
      "in halves, in pieces, first layers first",
      ["overlap=dear", "compression={kind: identity, chunkBytes: 4096}", "priorities=forward"],
    ],
    ["merged as measured, two at a time", ["buckets={kind: mg-wfbp, plan: simultaneous}", "priorities=spread"]],
    [
      "in buckets whose size is sought",
      ["buckets={kind: tuned, trials: 3, stepsEach: 3, minBytes: 512}", "overlap=dear"],
    ],
    ["in one process for each rank", ["overlap=dear", "transport=tcp"]],
  ])("%s", expectSameLearnt);
  test.each([
    ["after the backward pass", ["overlap=none"]],
    ["in halves, saved at the end only", ["overlap=dear", "checkpoint={}"]],
    ["beside each other", ["priorities=spread"]],
    ["merged as measured", ["buckets={kind: mg-wfbp}"]],
    ["merged greedily, in halves", ["buckets={kind: mg-wfbp, plan: greedy}", "overlap=dear"]],
  ])("%s", { tags: "full" }, expectSameLearnt);
});

test("a stopped run with split all-reduces resumes with the same bits", async () => {
  // without a cosine schedule, which would end at another step
  const settings = [...dense, "--set", "overlap=dear", "--set", "learningRate={peak: 0.005}"];
  const whole = await run("whole", ...settings);
  expect((await skeinTrain(folder, "run", "job.yaml", "--output", "parts", ...settings, "--steps", "17")).code).toBe(0);
  expect((await skeinTrain(folder, "resume", "parts", "--steps", "30")).code).toBe(0);
  expect(savedBy("parts").saved.equals(whole.saved)).toBe(true);
});

test("a measured plan is kept with the checkpoint, so that residuals fit when the run resumes", async () => {
  const settings = ["--set", "model.hidden=[24, 16]", "--set", "buckets={kind: mg-wfbp}"];
  const { stderr } = await run("planned", ...settings);
  expect(stderr).toMatch(/6 gradients in \d buckets?; an all-reduce takes .* expected exposed communication/);
  const { plan } = JSON.parse(
    readFileSync(join(folder, "planned/checkpoints/step-00000030/manifest.json"), "utf8"),
  ) as {
    plan: { buckets: string[][] };
  };
  expect(plan.buckets.flat().toSorted()).toEqual([0, 1, 2].flatMap((i) => [`layers.${i}.bias`, `layers.${i}.weight`]));
  expect((await skeinTrain(folder, "resume", "planned", "--steps", "33")).code).toBe(0);
});

test("with split all-reduces too, a non-finite loss or gradient stops the run and names the tensor", async () => {
  const { code, stderr } = await skeinTrain(
    folder,
    "run",
    "job.yaml",
    ...dense,
    "--set",
    "overlap=dear",
    "--set",
    "learningRate.peak=1e38",
    "--set",
    "optimizer={kind: sgd}",
    "--set",
    "learningRate.warmupSteps=0",
  );
  expect(code).not.toBe(0);
  expect(stderr).toMatch(
    /step \d+: the (loss|gradient of layers.*) is not finite \(loss .*\); the update was not made/,
  );
});
