import type { JobFile } from "../studies/job-file.ts";

/** A model whose step is timed; the quality that it reaches is irrelevant. */
export interface SpeedModel {
  readonly name: string;
  readonly title: string;
  /** Number of samples per step and rank. */
  readonly batchPerRank: number;
  readonly job: JobFile;
  /** Name of the narrower model in the convergence study whose settings and results are used. */
  readonly validatedAs: string;
}

const digits: JobFile = { kind: "mnist", trainSamples: 4096, testSamples: 200 };

/** Models in order, from compute-bound to communication-bound. */
export const speedModels: readonly SpeedModel[] = [
  {
    name: "resnet",
    validatedAs: "fashion-resnet",
    title: "ResNet-18 of 16 to 128 channels",
    batchPerRank: 16,
    job: {
      data: digits,
      model: { kind: "resnet18", channels: [16, 32, 64, 128] },
    },
  },
  {
    name: "gpt",
    validatedAs: "moby-dick-gpt",
    title: "GPT of 4 layers and 128 features, windows of 128 bytes",
    batchPerRank: 2,
    job: {
      data: { kind: "moby-dick", window: 128, testSamples: 32 },
      model: { kind: "gpt", layers: 4, heads: 4, width: 128 },
    },
  },
  {
    name: "cnn",
    validatedAs: "mnist-cnn",
    title: "a CNN of 32 and 64 channels, 128 hidden",
    batchPerRank: 16,
    job: {
      data: digits,
      model: { kind: "cnn" },
    },
  },
];
