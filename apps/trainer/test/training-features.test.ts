import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkpointsFolder, folderName } from "@skein/checkpoints/node";
import { type NdArray, readSafetensors } from "@skein/tensor-core";
import { examples } from "@skein/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { train, type TrainJob } from "../src/index.ts";
import { openSavedRun } from "../src/output-folder/saved-run.ts";
import { hasAdapter } from "./adapter.ts";
import { checkpointBytes, jobFolder, metricLines, skeinTrain, stepLosses, reportedUpdates } from "./cli.ts";
import { data, model } from "./points.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-features-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const job = {
  data,
  model,
  seed: 5,
  ranks: 2,
  backend: "cpu",
  batch: 60,
  steps: 6,
  optimizer: { kind: "adam" },
  learningRate: { peak: 0.01 },
} as const;

const lossesOf = async (name: string, settings: object): Promise<number[]> => {
  await train({ ...job, ...settings }, { output: join(folder, name) });
  return stepLosses(join(folder, name));
};

const tensorsOf = (output: string, step: number): ReadonlyMap<string, NdArray> =>
  readSafetensors(readFileSync(join(checkpointsFolder(join(folder, output)), folderName(step), "shared.safetensors")))
    .tensors;

describe("products of bf16", () => {
  test("learn as f32 does, but with other bits, skip no step, and resume from a checkpoint bit by bit", async () => {
    const settings = { precision: { kind: "mixed-bf16" }, overlap: "dear", ranks: 1 } as const;
    const [exact, rounded] = [await lossesOf("f32", { overlap: "dear", ranks: 1 }), await lossesOf("bf16", settings)];
    rounded.forEach((loss, i) => expect(Math.abs(loss / exact[i]! - 1)).toBeLessThan(2 ** -6));
    expect(rounded).not.toEqual(exact);
    await train({ ...job, ...settings, steps: 3 }, { output: join(folder, "halves") });
    const summary = await train({ ...job, ...settings }, { output: join(folder, "halves"), resume: true });
    expect(summary).not.toHaveProperty("skippedSteps");
    const tensors = [...tensorsOf("halves", 6)].map(([path, array]) => [path, [...array.data]]);
    expect(tensors).toEqual([...tensorsOf("bf16", 6)].map(([path, array]) => [path, [...array.data]]));
  });
});

describe("gradients accumulated over parts of a batch", () => {
  test("equal those of the whole batch, up to rounding, and so does their state", async () => {
    const whole = await lossesOf("whole", {});
    for (const accumulate of examples([3], [2, 3, 30])) {
      const losses = await lossesOf(`in-${accumulate}`, { accumulate });
      expect(losses).toHaveLength(6);
      losses.forEach((loss, i) => expect(loss).toBeCloseTo(whole[i]!, 5));
    }
    for (const [path, array] of tensorsOf("whole", 6))
      tensorsOf("in-3", 6)
        .get(path)!
        .toNumbers()
        .forEach((value, i) => expect(value).toBeCloseTo(array.toNumbers()[i]!, 4));
  });

  test("are refused where a rank's share cannot be split that way", async () => {
    await expect(train({ ...job, accumulate: 7 }, { output: join(folder, "never") })).rejects.toThrow(
      "30 samples of a batch on each rank are not divisible into 7 parts; use a divisor of 30, or a batch of 70",
    );
  });

  /**
   * Expects equal results of a job with immediate and with delayed updates.
   * @param before Settings of earlier starts of the run with delayed updates. The run is resumed after each start.
   */
  const expectSameLater = async (own: object, ...before: readonly object[]): Promise<void> => {
    const settings = { ...job, steps: 7, evaluation: { everySteps: 3 }, checkpoint: { everySteps: 2 }, ...own };
    const [early, late] = [join(folder, "early"), join(folder, "late")];
    await train(settings as TrainJob, { output: early });
    for (const [i, other] of [...before, {}].entries())
      await train({ ...settings, ...other, overlap: "dear" } as TrainJob, { output: late, resume: i > 0 });
    expect(stepLosses(late)).toEqual(stepLosses(early));
    expect(reportedUpdates(late)).toEqual(reportedUpdates(early));
    expect(checkpointBytes(late, 7)).toEqual(checkpointBytes(early, 7));
  };
  const digits = { data: { kind: "mnist", trainSamples: 120, testSamples: 20 }, model: { kind: "mlp", hidden: [8] } };
  test("have the same bits with delayed updates", () => expectSameLater({ accumulate: 3, average: { decay: 0.4 } }));
  test.each<[string, object, ...object[]]>([
    ["stopped between", { accumulate: 2 }, { steps: 5 }],
    ["each tensor by itself, in pieces", { accumulate: 3, buckets: { kind: "per-tensor" }, priorities: "forward" }],
    [
      "in buckets whose size is sought",
      { accumulate: 3, buckets: { kind: "tuned", trials: 2, stepsEach: 2, minBytes: 64 } },
    ],
    ["what is frozen", { accumulate: 3, freeze: ["layers.0.*"] }],
    ["curvature", { accumulate: 3, optimizer: { kind: "kfac" } }],
    ["a process for each rank", { ...digits, accumulate: 3, transport: "tcp" }],
    ["slices of state", { accumulate: 5, zero: 1, ranks: 3, evaluation: { everySteps: 3, batch: 33 } }],
    ["bf16", { accumulate: 3, precision: { kind: "mixed-bf16" } }],
    ["histograms of gradients", { accumulate: 3, histograms: { everySteps: 2 } }],
  ])("have the same bits with delayed updates: %s", { tags: "full" }, (_, own, ...before) =>
    expectSameLater(own, ...before),
  );
  test.skipIf(!hasAdapter)("have the same bits on WebGPU with delayed updates", { tags: "full" }, () =>
    expectSameLater({ accumulate: 3, backend: "webgpu" }),
  );
});

describe("a running mean of the parameters", () => {
  test.each(["wait-free", "dear"] as const)(
    "follows its formula, and the run is evaluated with it: %s",
    async (overlap) => {
      const output = join(folder, overlap);
      const settings = { overlap, average: { decay: 0.4 }, checkpoint: { everySteps: 1, keep: 9 } };
      const done = await train({ ...job, ...settings }, { output });
      const paths = [...tensorsOf(overlap, 1).keys()].filter((path) => path.startsWith("params."));
      expect(paths).toHaveLength(4);
      for (const path of paths) {
        const mean = (step: number): number[] =>
          tensorsOf(overlap, step).get(path.replace("params.", "average."))!.toNumbers();
        for (let step = 2; step <= 6; step++) {
          const past = Math.min(0.4, step / (9 + step));
          const [before, now] = [mean(step - 1), tensorsOf(overlap, step).get(path)!.toNumbers()];
          mean(step).forEach((value, i) => expect(value).toBeCloseTo(past * before[i]! + (1 - past) * now[i]!, 5));
        }
      }
      const { weight } = done.parameters().layers[0]!;
      expect(weight.toNumbers()).toEqual(tensorsOf(overlap, 6).get("average.layers.0.weight")!.toNumbers());
      expect(weight.toNumbers()).not.toEqual(tensorsOf(overlap, 6).get("params.layers.0.weight")!.toNumbers());
    },
  );

  test("leaves training unchanged, and resumes to the same bits, with accumulated gradients too", async () => {
    const inParts = { accumulate: 3, compression: { kind: "top-k", density: 0.5 } } as const;
    const settings = { ...inParts, average: { decay: 0.9 }, checkpoint: { everySteps: 3 } };
    const plain = await lossesOf("plain", inParts);
    expect(await lossesOf("with", settings)).toEqual(plain);
    await train({ ...job, ...settings, steps: 3 }, { output: join(folder, "parts") });
    await train({ ...job, ...settings }, { output: join(folder, "parts"), resume: true });
    expect(checkpointBytes(join(folder, "parts"), 6)).toEqual(checkpointBytes(join(folder, "with"), 6));
  });
});

test("labels are smoothed alike in a program's model and in a named one", { tags: "full" }, async () => {
  const smoothing = { labelSmoothing: 0.2, steps: 2 };
  const [plain, named, own] = [
    await lossesOf("plain", { steps: 2 }),
    await lossesOf("named", { ...smoothing, model: { kind: "mlp", hidden: [16] } }),
    await lossesOf("own", smoothing),
  ];
  expect(own).toEqual(named);
  expect(own[0]).not.toBeCloseTo(plain[0]!, 4);
  expect(checkpointBytes(join(folder, "own"), 2)).toEqual(checkpointBytes(join(folder, "named"), 2));
});

describe("evaluations that are compared", () => {
  // a learning rate with which the loss soon grows
  const worse = {
    steps: 60,
    learningRate: { peak: 3 },
    evaluation: { everySteps: 2, stopAfter: 3 },
    checkpoint: { best: true, keep: 1 },
  };
  const stepsSaved = (output: string): number[] =>
    readdirSync(checkpointsFolder(output))
      .map((name) => Number(name.slice(5)))
      .toSorted((a, b) => a - b);

  test("end a run early, and the best checkpoint is kept beside the newest", async () => {
    const output = join(folder, "early");
    const done = await train({ ...job, ...worse }, { output });
    const losses = metricLines(output)
      .filter(({ type }) => type === "evaluation")
      .map(({ step, loss }) => ({ step, loss }));
    const best = losses.reduce((least, one) => (one.loss < least.loss ? one : least));
    expect(done.step).toBe(best.step + 6);
    expect(done.step).toBeLessThan(60);
    expect(losses.at(-1)!.step).toBe(done.step);
    expect(stepsSaved(output)).toEqual([best.step, done.step]);
    expect(done.summary!.best).toMatchObject({ figure: "loss", step: best.step });
    expect(done.summary!.best!.value).toBeCloseTo(best.loss, 5);

    // With another metric, another checkpoint may be the best.
    const byAccuracy = {
      ...worse,
      evaluation: { everySteps: 2, compareBy: { figure: "accuracy", better: "higher" } },
    } as const;
    const judged = join(folder, "judged");
    const { summary } = await train({ ...job, ...byAccuracy, steps: 10 }, { output: judged });
    const accuracies = metricLines(judged).filter(({ type }) => type === "evaluation");
    const right = accuracies.reduce((most, one) => (one.accuracy > most.accuracy ? one : most));
    expect(summary!.best).toMatchObject({ figure: "accuracy", step: right.step });
    expect(summary!.best!.value).toBeCloseTo(right.accuracy, 5);
    const unknown = { ...byAccuracy, evaluation: { compareBy: { figure: "f1", better: "higher" } } } as const;
    await expect(train({ ...job, ...unknown }, { output: join(folder, "unknown") })).rejects.toThrow(
      /"f1" is not a metric that evaluations of this run can be compared by; use one of: loss, accuracy$/,
    );

    // From here on the direction is reversed: earlier comparisons must not end the run.
    const turned = { ...worse, evaluation: { ...worse.evaluation, compareBy: { figure: "loss", better: "higher" } } };
    cpSync(output, join(folder, "turned"), { recursive: true });
    const other = await train({ ...job, ...turned, steps: 14 } as TrainJob, {
      output: join(folder, "turned"),
      resume: true,
    });
    expect(other.step).toBeGreaterThan(done.step);
    expect(other.summary!.best!.step).toBeGreaterThan(done.step);

    // No step is left, until more patience is set.
    const again = await train({ ...job, ...worse }, { output, resume: true });
    expect(again.step).toBe(done.step);
    expect(stepsSaved(output)).toEqual([best.step, done.step]);
    const patient = { ...worse, evaluation: { everySteps: 2, stopAfter: 5 } };
    const longer = await train({ ...job, ...patient }, { output, resume: true });
    const whole = await train({ ...job, ...patient }, { output: join(folder, "whole") });
    expect(longer.step).toBe(whole.step);
    expect(longer.summary!.best).toEqual(whole.summary!.best);
    expect(checkpointBytes(output, longer.step)).toEqual(checkpointBytes(join(folder, "whole"), whole.step));
  });
});

test("on processes the same: accumulation, mean, and an early stop, with the bits of threads; commands use the best checkpoint", async () => {
  const { folder: own, remove } = jobFolder();
  try {
    const settings = [
      "accumulate=4",
      "average={decay: 0.9}",
      "learningRate={peak: 0.9, decay: wsd, warmupSteps: 2}",
      "evaluation={batch: 100, everySteps: 3, stopAfter: 2}",
      "checkpoint={best: true}",
    ].flatMap((setting) => ["--set", setting]);
    for (const transport of ["threads", "tcp"]) {
      const args = ["run", "job.yaml", "--output", transport, "--transport", transport, ...settings];
      const { code, stderr } = await skeinTrain(own, ...args);
      expect([code, stderr]).toEqual([
        0,
        expect.stringContaining("the run ends early; the last 2 evaluations were not better"),
      ]);
    }
    const steps = ["threads", "tcp"].map((output) => metricLines(join(own, output)).at(-1)!.step);
    expect(steps[0]).toBe(steps[1]);
    expect(checkpointBytes(join(own, "tcp"), steps[0]!)).toEqual(checkpointBytes(join(own, "threads"), steps[0]!));
    const best = await openSavedRun(join(own, "tcp"), "best");
    expect(best.step).toBe(steps[0]! - 6);
    const { code, stdout } = await skeinTrain(own, "evaluate", "tcp", "--checkpoint", "best", "--json");
    const { loss } = metricLines(join(own, "tcp")).find(
      ({ type, step }) => type === "evaluation" && step === best.step,
    )!;
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { step: best.step }]);
    expect((JSON.parse(stdout) as { loss: number }).loss).toBeCloseTo(loss, 5);
    expect(
      readFileSync(join(checkpointsFolder(join(own, "tcp")), folderName(best.step), "manifest.json"), "utf8"),
    ).toContain('"best"');
  } finally {
    remove();
  }
});
