import type { JobFile } from "../studies/job-file.ts";

/** Model and data to train on, with a target quality. */
export interface Task {
  readonly name: string;
  readonly title: string;
  readonly job: JobFile;
  /** Target quality: minimum percentage of correct answers, or maximum bits per byte. */
  readonly target: { readonly unit: "%" | "bits"; readonly value: number };
  /**
   * Maximum difference between the quality of the first seed and the target, in the target's unit. If the first seed
   * misses the target by more, the other seeds are skipped, because the mean would not reach the target.
   */
  readonly near: number;
  /** Run lengths in steps, each about 1.4 times the previous length. The learning-rate schedule ends with the run. */
  readonly horizons: readonly number[];
  /** Number of steps of a search run: about the number that the faster half of the methods need. */
  readonly searchSteps: number;
  /** Expected seconds per step on one core, used only to estimate how long a study takes. */
  readonly stepSeconds: number;
  /** Job options that override the job in a quick run, which shows only whether the job runs. */
  readonly quick: JobFile;
}

const common: JobFile = {
  name: "second-order",
  ranks: 1,
  threads: 1,
  backend: "cpu",
  compression: { kind: "identity" },
};

/**
 * Returns the learning-rate schedule: warm-up over `warmupSteps` to the searched peak, then decay to a fiftieth of the
 * peak.
 */
export const rateOf = (peak: number): JobFile => ({ peak, warmupSteps: 30, decay: "cosine", final: peak / 50 });

export const tasks: readonly Task[] = [
  {
    name: "mnist-cnn",
    title: "MNIST, a convolutional network of 421,642 weights, batches of 64",
    job: { ...common, batch: 64, data: { kind: "mnist" }, model: { kind: "cnn" }, evaluation: { batch: 500 } },
    target: { unit: "%", value: 99 },
    near: 0.15,
    horizons: [300, 420, 600, 850, 1200, 1700, 2400],
    searchSteps: 420,
    stepSeconds: 0.015,
    quick: { steps: 4, data: { kind: "mnist", trainSamples: 640, testSamples: 500 } },
  },
  {
    name: "moby-dick-gpt",
    title: "Moby-Dick by bytes, a GPT of 2 layers and 64 features, batches of 16 windows of 64",
    job: {
      ...common,
      batch: 16,
      data: { kind: "moby-dick", window: 64, testFraction: 0.05 },
      model: { kind: "gpt", layers: 2, heads: 4, width: 64 },
      clipNorm: 1,
      evaluation: { batch: 128 },
    },
    target: { unit: "bits", value: 2.75 },
    near: 0.04,
    horizons: [150, 210, 300, 420, 600, 850, 1200, 1700, 2400, 3400],
    searchSteps: 420,
    stepSeconds: 0.012,
    quick: { steps: 4, data: { kind: "moby-dick", window: 64, testSamples: 128 } },
  },
  {
    name: "fashion-resnet",
    title: "Fashion-MNIST, ResNet-18 of 8 to 64 channels, batches of 64",
    job: {
      ...common,
      batch: 64,
      data: { kind: "fashion-mnist" },
      model: { kind: "resnet18", channels: [8, 16, 32, 64] },
      evaluation: { batch: 500 },
    },
    target: { unit: "%", value: 88 },
    near: 0.5,
    horizons: [150, 210, 300, 420, 600, 850, 1200],
    searchSteps: 300,
    stepSeconds: 0.04,
    quick: { steps: 4, data: { kind: "fashion-mnist", trainSamples: 640, testSamples: 500 } },
  },
];
