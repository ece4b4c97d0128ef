import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { evaluateRun } from "../src/commands/evaluate-command.ts";
import { train, type TrainJob, type TrainOptions } from "../src/index.ts";
import { openSavedRun } from "../src/output-folder/saved-run.ts";
import { checkpointNames, jobFolder, metricLines } from "./cli.ts";
import { expectSameEnd, messageOf } from "./run-ends.ts";

const samples = fileURLToPath(new URL("../../../packages/data/test/images", import.meta.url));
const names = readdirSync(samples).filter((name) => !name.endsWith(".py"));

let folder: string;
let images: string;
let remove: () => void;
beforeEach(() => {
  ({ folder, remove } = jobFolder());
  images = join(folder, "images");
  // ten training images of two classes, and six other images for evaluation
  for (const [i, name] of names.entries())
    for (const part of i < 6 ? ["train", "test"] : ["train"]) {
      const place = join(images, part, i % 2 === 0 ? "one" : "other");
      mkdirSync(place, { recursive: true });
      copyFileSync(join(samples, name), join(place, name));
    }
});
afterEach(async () => {
  vi.unstubAllEnvs();
  vi.useRealTimers();
  remove();
  await expect.poll(() => readingThreads(), { timeout: 30_000 }).toEqual([]); // none outlives its run, however it ended
});

/** Returns the ids of the threads of this process that assemble batches. Empty if the system does not list threads. */
const readingThreads = (): string[] => {
  const tasks = "/proc/self/task";
  const nameOf = (task: string): string => {
    try {
      return readFileSync(join(tasks, task, "comm"), "utf8").trim();
    } catch {
      return ""; // the thread has just ended
    }
  };
  return existsSync(tasks) ? readdirSync(tasks).filter((task) => nameOf(task) === "skein-prefetch") : [];
};

const imageBytes = 4 * 4 * 3;

const job = (data: object = {}, more: Partial<TrainJob> = {}): TrainJob => ({
  ranks: 2,
  backend: "cpu",
  batch: 4,
  steps: 8,
  data: { kind: "image-folder", folder: images, size: 4, augment: { crop: 1, flip: true }, ...data },
  model: { kind: "mlp", hidden: [4] },
  optimizer: { kind: "adam" },
  learningRate: { peak: 0.01, decay: "constant" },
  evaluation: { batch: 4 },
  ...more,
});

describe("images that are decoded during training", () => {
  test("give the same run as images decoded before, when resumed with another cache too, and the same evaluations", async () => {
    const output = (name: string): string => join(folder, name);
    const eager = await train(job(), { output: output("before") });
    const few = { cacheMegabytes: (5 * imageBytes) / 1e6, decodesAtOnce: 2 };
    const { summary } = await train(job(few), { output: output("beside") });
    expectSameEnd(output("beside"), output("before"), 8);
    expect(summary!.testLoss).toBe(eager.summary!.testLoss);
    expect(summary!.cacheHitRate).toBeGreaterThan(0);
    expect(metricLines(output("beside"))[0]).toMatchObject({ type: "step", cacheHitRate: 0 });
    const { lossSum, count } = await evaluateRun(await openSavedRun(output("beside")), () => undefined);
    expect(lossSum / count).toBe(summary!.testLoss);

    const stop = new AbortController();
    const resumed = { output: output("resumed"), onStep: ({ step }) => step === 3 && stop.abort() } as TrainOptions;
    await train(job(few, { steps: 8 }), { ...resumed, signal: stop.signal });
    const notes: string[] = [];
    await train(job({ cacheMegabytes: 0 }), { ...resumed, resume: true, onNote: (line) => notes.push(line) });
    expect(notes.filter((line) => line.includes("the job differs"))).toEqual([]);
    expectSameEnd(output("resumed"), output("beside"), 8);
  });

  test("are not hashed again when a run resumes, except those that changed", async () => {
    vi.stubEnv("SKEIN_CACHE_DIR", join(folder, "cache"));
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 10_000 }); // files count as written ten seconds ago
    const data = { cacheMegabytes: 0 };
    const output = join(folder, "stopped");
    const notes: string[] = [];
    const options = { output, onNote: (line: string) => notes.push(line) };
    const remarks = (): string[] =>
      notes.splice(0).filter((line) => /unchanged since their digests were computed|the job differs/.test(line));
    const stop = new AbortController();
    await train(job(data), {
      ...options,
      onStep: ({ step }) => void (step === 3 && stop.abort()),
      signal: stop.signal,
    });
    expect(remarks()).toEqual([]);
    const changed = join(folder, "changed");
    cpSync(output, changed, { recursive: true });
    await train(job(data), { ...options, resume: true });
    expect(remarks()).toEqual([
      expect.stringMatching(/^16 of 16 images are unchanged since their digests were computed/),
    ]);

    copyFileSync(join(samples, names[1]!), join(images, "train/one", names[0]!));
    await train(job(data), { ...options, output: changed, resume: true });
    expect(remarks()).toEqual([
      expect.stringMatching(/^15 of 16 images are unchanged since their digests were computed/),
      expect.stringMatching(/^the job differs from the one that wrote the checkpoint/),
    ]);
  });

  test("are evaluated in one thread of each rank, however often", async () => {
    const threads = new Set<string>();
    const onStep = (): void => readingThreads().forEach((thread) => threads.add(thread));
    const evaluation = { batch: 4, everySteps: 1 };
    const { summary } = await train(job({ cacheMegabytes: 0 }, { evaluation, steps: 12 }), {
      output: join(folder, "often"),
      onStep,
    });
    expect(summary!.testLoss).toBeGreaterThan(0);
    // two ranks, each with a thread for training and a thread for evaluation
    if (existsSync("/proc/self/task")) expect(threads.size).toBe(4);
  });

  test("that are damaged are replaced by others, named once, and counted", async () => {
    for (const place of ["train/one/plain.jpg", "test/other/grey-16.png"])
      for (const name of readdirSync(join(images, place, "..")).slice(0, 1))
        writeFileSync(join(images, place, "..", name), "no image");
    const notes: string[] = [];
    const output = join(folder, "damaged");
    const { summary } = await train(job({ cacheMegabytes: 0, skipDamaged: true }), {
      output,
      onNote: (line) => notes.push(line),
    });
    const replacements = notes.filter((line) => line.endsWith("the next valid image replaces it"));
    expect([replacements.length, new Set(replacements).size, summary!.damagedImages]).toEqual([2, 2, 2]);
  });
});

describe("a folder of images that disappears during a run", () => {
  const withoutFolder = async (
    data: object,
    more: Partial<TrainJob>,
    vanishesAfter: number,
  ): Promise<{ readonly output: string; readonly step: number }> => {
    const output = join(folder, "cut-short");
    const message = await messageOf(
      train(job(data, { steps: 100_000, ...more }), {
        output,
        onStep: ({ step }) => {
          if (step === vanishesAfter) renameSync(images, `${images}.away`);
        },
      }),
    );
    expect(message).toMatch(
      /^rank [01]: \S+ cannot be read \(ENOENT\); .* the state after step \d+ is saved; .* resume /,
    );
    const step = Number(/after step (\d+) is saved/.exec(message)![1]);
    expect(step).toBeGreaterThanOrEqual(vanishesAfter);
    expect(checkpointNames(output).at(-1)).toBe(`step-${String(step).padStart(8, "0")}`);
    renameSync(`${images}.away`, images);
    return { output, step };
  };

  test("ends it after a step of all ranks, which is saved; it resumes as if nothing had happened", async () => {
    const data = { cacheMegabytes: 0 };
    const { output, step } = await withoutFolder(data, { evaluation: { batch: 4, everySteps: 100_000 } }, 5);
    const steps = step + 3;
    const evaluation = { batch: 4, everySteps: 100_000 };
    await train(job(data, { steps, evaluation }), { output, resume: true });
    await train(job(data, { steps, evaluation }), { output: join(folder, "whole") });
    expectSameEnd(output, join(folder, "whole"), steps);
  });

  /**
   * Trains with an evaluation, and expects the training to stop at the start of the evaluation, when all training
   * images and no test images are cached.
   */
  const beforeEvaluation = async (more: Partial<TrainJob>): Promise<void> => {
    const data = { cacheMegabytes: (names.length * imageBytes) / 1e6 };
    const { step } = await withoutFolder(data, { ...more, evaluation: { batch: 4, everySteps: 120 } }, 60);
    expect([120, 121]).toContain(step);
  };

  test("does so before an evaluation, too", { tags: "full" }, () => beforeEvaluation({}));

  test("and where ranks compare their evaluations", { tags: "full" }, () =>
    beforeEvaluation({ checkpoint: { best: true } }),
  );
});
