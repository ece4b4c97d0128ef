import type { JobFile } from "../studies/job-file.ts";

/** A model and its data, trained by four ranks that run in threads. */
export interface ModelJob {
  readonly name: string;
  readonly title: string;
  /** Whether claims in the documents depend on the model. */
  readonly core: boolean;
  readonly job: JobFile;
  /** Expected seconds of a run on two cores, used only to estimate how long a study takes. */
  readonly expectedSeconds: number;
  /** Job options that override the job in a quick run, which shows only whether the job runs. */
  readonly quick: JobFile;
}

const common: JobFile = {
  name: "convergence",
  ranks: 4,
  backend: "cpu",
  transport: "threads",
  evaluation: { batch: 500 },
};

/** Models sized so that a dense run takes about a minute on two cores; the residual network takes longer. */
export const models: readonly ModelJob[] = [
  {
    name: "mnist-cnn",
    core: true,
    expectedSeconds: 40,
    title: "MNIST, a convolutional network, 1 epoch",
    job: {
      ...common,
      batch: 64,
      epochs: 1,
      data: { kind: "mnist" },
      model: { kind: "cnn" },
      optimizer: { kind: "adamw", weightDecay: 0.01 },
      learningRate: { peak: 0.002, warmupSteps: 100, decay: "cosine" },
    },
    quick: { steps: 8, data: { kind: "mnist", trainSamples: 640, testSamples: 200 } },
  },
  {
    name: "fashion-resnet",
    core: false,
    expectedSeconds: 150,
    title: "Fashion-MNIST, 30,000 images, ResNet-18 of 8 to 64 channels, 5 epochs",
    job: {
      ...common,
      // A narrow model and small batches, because a gradient entry that is sent once in 100 steps needs thousands of
      // steps.
      batch: 64,
      epochs: 5,
      data: { kind: "fashion-mnist", trainSamples: 30_000 },
      model: { kind: "resnet18", channels: [8, 16, 32, 64] },
      optimizer: { kind: "momentum", decay: 0.9, weightDecay: 0.0005 },
      learningRate: { peak: 0.1, warmupSteps: 100, decay: "cosine" },
    },
    quick: { steps: 6, data: { kind: "fashion-mnist", trainSamples: 640, testSamples: 200 } },
  },
  {
    name: "moby-dick-gpt",
    core: true,
    expectedSeconds: 60,
    title: "Moby-Dick by bytes, a GPT of 2 layers and 64 features, 2000 steps",
    job: {
      ...common,
      batch: 16,
      steps: 2000,
      data: { kind: "moby-dick", window: 64, testFraction: 0.05 },
      model: { kind: "gpt", layers: 2, heads: 4, width: 64 },
      optimizer: { kind: "adamw", beta2: 0.99, weightDecay: 0.1 },
      learningRate: { peak: 0.004, warmupSteps: 100, decay: "cosine", final: 0.0004 },
      clipNorm: 1,
      evaluation: { batch: 128 },
    },
    quick: { steps: 6, data: { kind: "moby-dick", window: 64, testSamples: 128 } },
  },
];
