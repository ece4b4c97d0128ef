import type { JobFile } from "../studies/job-file.ts";
import type { ModelJob } from "./models.ts";

/** A gradient compression in job file format, and its quality margin compared with dense training. */
export interface Setting {
  readonly name: string;
  readonly compression: JobFile;
  /** Additional compression options for one model, by model name. */
  readonly compressionOf?: Readonly<Record<string, JobFile>>;
  /**
   * Job options that override the options of every model's job. Learning rates here and in `jobOf` are the middle of
   * the searched rates (`search-plan.ts`).
   */
  readonly job?: JobFile;
  /** Additional job options for one model, by model name. */
  readonly jobOf?: Readonly<Record<string, JobFile>>;
  /** Names of the models that the study does not train with this compression setting. */
  readonly leavesOut?: readonly string[];
  /**
   * Name of the dense setting with which this setting is compared. A method that needs a different optimizer is
   * compared with dense training by that optimizer.
   */
  readonly comparedWith: string;
  /** Maximum quality loss compared with the setting `comparedWith`. */
  readonly margin: Margin;
  /** Reason why the setting overrides job options. */
  readonly why?: string;
}

export interface Margin {
  /** Maximum loss of held-out accuracy, in percentage points. */
  readonly points: number;
  /** Maximum increase in bits per byte. */
  readonly bits: number;
}

/**
 * Allowed quality loss for methods that should lose no quality: twice the largest difference between two seeds of a
 * dense run.
 */
const same: Margin = { points: 0.5, bits: 0.05 };
/** Allowed quality loss for biased compressors at a high compression ratio in short runs. */
const close: Margin = { points: 1, bits: 0.1 };
/** Allowed quality loss for methods that send only signs, or drop most of a gradient without a residual. */
const loose: Margin = { points: 3, bits: 0.4 };

/**
 * Momentum 0.9 for models whose job uses another optimizer, as in papers on quantization and low rank. ResNet-18
 * already uses momentum.
 */
const momentum: Readonly<Record<string, JobFile>> = {
  "mnist-cnn": { optimizer: { kind: "momentum" }, learningRate: { peak: 0.05 } },
  "moby-dick-gpt": { optimizer: { kind: "momentum" }, learningRate: { peak: 0.3, final: 0.03 } },
};
/** SGD without momentum, for methods that include momentum. */
const ownMomentum: Readonly<Record<string, JobFile>> = {
  "mnist-cnn": { optimizer: { kind: "sgd" }, learningRate: { peak: 0.05 } },
  "fashion-resnet": { optimizer: { kind: "sgd", weightDecay: 0.0005 } },
  "moby-dick-gpt": { optimizer: { kind: "sgd" }, learningRate: { peak: 0.3, final: 0.03 }, clipNorm: undefined },
};
/**
 * SGD options for methods that include momentum 0.9 as a running mean. A running mean is a tenth of the usual momentum
 * sum, so the learning rate is ten times as large. The GPT has a third of that rate and no gradient clipping, because
 * the norm of a gradient of signs depends only on its number of entries.
 */
const runningMean: Readonly<Record<string, JobFile>> = {
  "mnist-cnn": { optimizer: { kind: "sgd" }, learningRate: { peak: 0.5 } },
  "fashion-resnet": { optimizer: { kind: "sgd", weightDecay: 0.0005 }, learningRate: { peak: 1 } },
  "moby-dick-gpt": { optimizer: { kind: "sgd" }, learningRate: { peak: 1, final: 0.1 }, clipNorm: undefined },
};
/** SGD for methods that change every parameter by the learning rate in every step, as Adam does. */
const signs: Readonly<Record<string, JobFile>> = {
  "mnist-cnn": { optimizer: { kind: "sgd" }, learningRate: { peak: 0.0005 } },
  "fashion-resnet": { optimizer: { kind: "sgd" }, learningRate: { peak: 0.002 } },
  "moby-dick-gpt": { optimizer: { kind: "sgd" }, learningRate: { peak: 0.002, final: 0.0002 }, clipNorm: undefined },
};

const density = 0.01;
/**
 * Dense training in the first quarter of the GPT's steps, until its weights reach their scale. 1-bit Adam begins the
 * same way.
 */
const quarterDense: JobFile = { warmupSteps: 500 };
/**
 * Higher densities in the first steps of the GPT, as in DGC. The GPT trains with Adam, which handles rare large entries
 * badly in the first steps.
 */
const denserFirst: Setting["compressionOf"] = {
  "moby-dick-gpt": { densityWarmup: { densities: [0.25, 0.0625, 0.015625], stepsEach: 200 } },
};
/**
 * Larger density of the GPT for methods whose mean gradient has k entries in total. The mean gradient of top-k has up
 * to k entries from each rank.
 */
const asManyAsTopK: Setting["compressionOf"] = {
  "moby-dick-gpt": { density: 4 * density, densityWarmup: { densities: [0.25, 0.125, 0.0625], stepsEach: 300 } },
};
const meanOfK =
  "its mean has k entries, where top-k's has up to 4k; the GPT, which misses them, is trained with four times the k";
const momentumFirst =
  "momentum before the compression (Zheng et al. 2019): behind it, error feedback is unstable at the dense run's learning rate";

/**
 * All compression settings of this study. `compression` uses the names and options of job files. A compression kind
 * that the trainer does not know results in a row with the trainer's error.
 */
export const settings: readonly Setting[] = [
  { name: "identity", compression: { kind: "identity" }, comparedWith: "identity", margin: same },
  {
    name: "identity-momentum",
    compression: { kind: "identity" },
    jobOf: momentum,
    leavesOut: ["fashion-resnet"],
    comparedWith: "identity-momentum",
    margin: same,
    why: "the dense run beside methods that are used with momentum",
  },
  {
    name: "top-k",
    compression: { kind: "top-k", density },
    compressionOf: denserFirst,
    comparedWith: "identity",
    margin: close,
  },
  {
    name: "top-k-0.1%",
    compression: {
      kind: "top-k",
      density: 0.001,
      densityWarmup: { densities: [0.25, 0.0625, 0.015625, 0.004], stepsEach: 25 },
    },
    compressionOf: {
      "moby-dick-gpt": { densityWarmup: { densities: [0.25, 0.0625, 0.015625, 0.004], stepsEach: 300 } },
    },
    comparedWith: "identity",
    margin: loose,
    why: "four densities come before, as DGC does it",
  },
  {
    name: "top-k-no-feedback",
    compression: { kind: "top-k", density, errorFeedback: false },
    comparedWith: "identity",
    margin: loose,
    why: "known to fail on harder tasks: what error feedback is for",
  },
  {
    name: "top-k-eight-bit",
    compression: { kind: "top-k", density, values: { kind: "eight-bit" } },
    compressionOf: denserFirst,
    comparedWith: "identity",
    margin: close,
    why: "a chain: the values that are sent take a byte each",
  },
  {
    name: "top-k-matrices",
    compression: { kind: "top-k", density, denseVectors: true },
    compressionOf: denserFirst,
    comparedWith: "identity",
    margin: close,
    why: "a partition: biases, gains and other vectors travel dense",
  },
  {
    name: "random-k",
    compression: { kind: "random-k", density },
    comparedWith: "identity",
    margin: loose,
    why: "known to fail on harder tasks: an entry waits 100 steps on average, too long for momentum and a learning rate for dense gradients",
  },
  {
    name: "random-k-10%",
    compression: { kind: "random-k", density: 0.1 },
    comparedWith: "identity",
    margin: loose,
    why: "known to fail where momentum or Adam carries on what came late",
  },
  {
    name: "threshold",
    compression: { kind: "threshold", threshold: 0.001, capacity: 0.1 },
    comparedWith: "identity",
    margin: close,
  },
  {
    name: "gaussian-k",
    compression: { kind: "gaussian-k", density },
    compressionOf: denserFirst,
    comparedWith: "identity",
    margin: close,
  },
  {
    name: "ms-top-k",
    compression: { kind: "ms-top-k", density },
    compressionOf: denserFirst,
    comparedWith: "identity",
    margin: close,
  },
  {
    name: "dgc",
    compression: { kind: "dgc", density, densityWarmup: { densities: [0.25, 0.0625, 0.015625], stepsEach: 50 } },
    compressionOf: { "moby-dick-gpt": { clipNorm: 1, ...denserFirst["moby-dick-gpt"] } },
    jobOf: ownMomentum,
    comparedWith: "identity-momentum",
    margin: close,
    why: "its momentum of 0.9 is in the compressor, so the optimizer has none",
  },
  {
    name: "g-top-k",
    compression: { kind: "g-top-k", density },
    compressionOf: asManyAsTopK,
    comparedWith: "identity",
    margin: close,
    why: meanOfK,
  },
  {
    name: "hierarchical-top-k",
    compression: { kind: "hierarchical-top-k", density, ranksPerHost: 2 },
    compressionOf: {
      "moby-dick-gpt": { density: 2 * density, densityWarmup: { densities: [0.25, 0.0625, 0.03125], stepsEach: 200 } },
    },
    comparedWith: "identity",
    margin: close,
    why: "its mean has up to 2k entries, k of each host; the GPT is trained with twice the k",
  },
  {
    name: "ok-top-k",
    compression: { kind: "ok-top-k", density },
    compressionOf: asManyAsTopK,
    comparedWith: "identity",
    margin: close,
    why: meanOfK,
  },
  {
    name: "majority-vote",
    compression: { kind: "majority-vote" },
    jobOf: signs,
    comparedWith: "identity",
    margin: loose,
    why: "a vote is ±1 whatever the gradient, so plain SGD with a small learning rate",
  },
  {
    name: "majority-vote-momentum",
    compression: { kind: "majority-vote", momentum: 0.9 },
    jobOf: signs,
    comparedWith: "identity-momentum",
    margin: close,
    why: "Signum: votes with the signs of momentum, as the papers train",
  },
  {
    name: "scaled-sign",
    compression: { kind: "scaled-sign", perTensor: true, momentum: 0.9 },
    compressionOf: { "moby-dick-gpt": quarterDense },
    jobOf: runningMean,
    comparedWith: "identity-momentum",
    margin: close,
    why: momentumFirst,
  },
  {
    name: "one-bit",
    compression: { kind: "one-bit", warmupSteps: 100, momentum: 0.9 },
    compressionOf: { "moby-dick-gpt": { blockSize: 64, ...quarterDense } },
    jobOf: runningMean,
    comparedWith: "identity-momentum",
    margin: close,
    why: momentumFirst,
  },
  { name: "qsgd", compression: { kind: "qsgd", levels: 127 }, comparedWith: "identity", margin: same },
  { name: "qsgd-4-bit", compression: { kind: "qsgd", levels: 7 }, comparedWith: "identity", margin: close },
  {
    name: "tern-grad",
    compression: { kind: "tern-grad", clip: 2.5 },
    jobOf: momentum,
    comparedWith: "identity-momentum",
    margin: close,
    why: "used with momentum",
  },
  { name: "eight-bit", compression: { kind: "eight-bit" }, comparedWith: "identity", margin: same },
  { name: "agoq", compression: { kind: "agoq" }, comparedWith: "identity", margin: same },
  { name: "power-sgd", compression: { kind: "power-sgd", rank: 4 }, comparedWith: "identity", margin: close },
  {
    name: "acp-sgd",
    compression: { kind: "acp-sgd", rank: 4 },
    compressionOf: { "moby-dick-gpt": { rank: 8 } },
    comparedWith: "identity",
    margin: close,
    why: "one factor per step; the GPT is trained with twice the rank",
  },
  {
    name: "lags",
    compression: { kind: "lags", minDensity: 0.001, maxDensity: 0.1 },
    compressionOf: { "moby-dick-gpt": { warmupSteps: 300 } },
    job: { buckets: { kind: "per-tensor" } },
    comparedWith: "identity",
    margin: close,
    why: "a density for each tensor, so a message for each",
  },
  {
    name: "ef21",
    compression: { kind: "ef21", density: 0.05 },
    compressionOf: { "moby-dick-gpt": quarterDense },
    jobOf: momentum,
    comparedWith: "identity-momentum",
    margin: close,
    why: "at five times the density of top-k; known to fail with small batches, whose noise it remembers as gradient: see ef21-momentum",
  },
  {
    name: "ef21-momentum",
    compression: { kind: "ef21", density: 0.05, momentum: 0.9 },
    compressionOf: { "moby-dick-gpt": quarterDense },
    jobOf: runningMean,
    comparedWith: "identity-momentum",
    margin: close,
    why: "EF21-SGDM: momentum before the compression, against the noise of small batches",
  },
];

/**
 * Settings that claims depend on: the settings that `docs/algorithms.md` recommends, the settings that test the papers'
 * orderings, and a method that is known to fail, which shows that the study detects failures.
 */
const core: ReadonlySet<string> = new Set([
  "identity",
  "identity-momentum",
  "top-k",
  "random-k-10%",
  "gaussian-k",
  "ms-top-k",
  "g-top-k",
  "ok-top-k",
  "scaled-sign",
  "qsgd",
  "agoq",
  "power-sgd",
  "acp-sgd",
  "lags",
]);

/** Whether a claim depends on the result of a setting on a model. */
export const isCore = (model: ModelJob, { name }: Pick<Setting, "name">): boolean => model.core && core.has(name);

/** Returns the compression settings with which the study trains a model, dense first. */
export const settingsOf = ({ name }: ModelJob): Setting[] =>
  settings.filter(({ leavesOut = [] }) => !leavesOut.includes(name));
