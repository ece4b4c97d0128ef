import { type JobFile, layJobs } from "../studies/job-file.ts";

/** Hyperparameters of a method that the search varies. */
export interface Setting {
  readonly peak: number;
  /** Trust ratio coefficient; LARS only. */
  readonly coefficient?: number;
  readonly warmupShare: number;
  readonly weightDecay: number;
  readonly labelSmoothing: number;
  readonly decay: number;
}

/** A method to train the same network on the same samples for the same number of epochs. */
export interface Contestant {
  readonly name: string;
  /** Number of batches per epoch. */
  readonly batchesPerEpoch: number;
  readonly job: JobFile;
  readonly optimizer: "lars" | "momentum";
  /** Learning rates of the first search runs. For LARS, each rate has a trust ratio coefficient. */
  readonly rates: readonly Pick<Setting, "peak" | "coefficient">[];
  /** Changes to the best setting of the first search runs. The search tries each change separately. */
  readonly changes: readonly Partial<Setting>[];
  readonly note: string;
  /** Whether a claim depends on the method. */
  readonly core: boolean;
}

/** Hyperparameters that are equal in all first search runs. */
const middle = { warmupShare: 0.1, weightDecay: 0.0005, labelSmoothing: 0.1, decay: 0.9 };

/** Changes that are known to matter at any batch size. */
const fewChanges: readonly Partial<Setting>[] = [{ labelSmoothing: 0 }, { weightDecay: 0.005 }];

/**
 * Learning rates for LARS, each with a trust ratio coefficient. The product of rate and coefficient is 0.01 or 0.03,
 * which is the step length relative to a tensor's norm, before momentum.
 */
const larsRates = [0.3, 1, 3].flatMap((peak) =>
  [0.01, 0.03].map((step) => ({ peak, coefficient: Number((step / peak).toPrecision(2)) })),
);

export const small = "small-batch";
export const large = "large-batch-lars";

export const contestants: readonly Contestant[] = [
  {
    name: small,
    batchesPerEpoch: 100,
    optimizer: "momentum",
    job: {},
    rates: [0.01, 0.03, 0.1, 0.3].map((peak) => ({ peak })),
    changes: [],
    note: "100 batches an epoch, f32, momentum",
    core: true,
  },
  {
    name: large,
    batchesPerEpoch: 20,
    optimizer: "lars",
    job: { precision: { kind: "mixed-f16" } },
    rates: larsRates,
    changes: [...fewChanges, { warmupShare: 0.3 }, { decay: 0.95 }],
    note: "20 batches an epoch, f16 products under a loss scale, LARS",
    core: true,
  },
  {
    name: "large-batch-momentum",
    batchesPerEpoch: 20,
    optimizer: "momentum",
    job: { precision: { kind: "mixed-f16" } },
    rates: [0.1, 0.3, 1].map((peak) => ({ peak })),
    changes: fewChanges,
    note: "20 batches an epoch, f16 products under a loss scale, momentum",
    core: false,
  },
];

const epochs = 10;

/** Number of samples for the final training run of a method. */
export const trainSamples = 6000;
/** Number of samples during the search, smaller because the search has many runs. */
export const searchSamples = 4000;
/** Fraction of the 60,000 training images held out to evaluate settings. */
export const validationFraction = 0.1;

const task: JobFile = {
  name: "large-batch",
  ranks: 1,
  threads: 1,
  backend: "cpu",
  epochs,
  data: { kind: "fashion-mnist", trainSamples },
  model: { kind: "resnet18", channels: [8, 16, 32, 64] },
  compression: { kind: "identity" },
  evaluation: { batch: 500 },
};

/** Job options that override a job in a quick run, which shows only whether the job runs. */
export const quickJob: JobFile = {
  steps: 2,
  batch: 40,
  data: { kind: "fashion-mnist", trainSamples: 400, testSamples: 500 },
};

/**
 * Returns the job of a method with a setting.
 *
 * @param samples Number of training samples, divisible by the batch size.
 */
export const jobOf = (
  { batchesPerEpoch, optimizer, job }: Contestant,
  { peak, coefficient, warmupShare, weightDecay, labelSmoothing, decay }: Setting,
  samples: number,
): JobFile =>
  layJobs(task, job, {
    batch: samples / batchesPerEpoch,
    optimizer: { kind: optimizer, decay, weightDecay, ...(coefficient !== undefined && { coefficient }) },
    learningRate: { peak, warmupSteps: Math.round(warmupShare * epochs * batchesPerEpoch), decay: "polynomial" },
    ...(labelSmoothing > 0 && { labelSmoothing }),
  });

/** Returns the settings of the first search runs. */
export const firstSettings = ({ rates }: Contestant): Setting[] => rates.map((rate) => ({ ...middle, ...rate }));

/** Returns the settings of the second search runs. Each setting differs from the best first setting in one change. */
export const changedSettings = ({ changes }: Contestant, best: Setting): Setting[] =>
  changes.map((change) => ({ ...best, ...change }));

/** Returns expected seconds of a run on one core, for epochs of `samples` samples. */
export const expectedSeconds = (samples: number): number => 5 + samples * epochs * 0.001;
