import { mnistClasses, type Records, splitText, takeRecords, textRecords } from "@skein/data";
import { loadFashionMnist, loadMnist, loadMobyDick } from "@skein/data/node";
import { cnn, gpt, mlp, type Model, resnet18 } from "@skein/models";
import {
  adam,
  adamw,
  chain,
  clipByGlobalNorm,
  cosineDecay,
  decayMatrices,
  dynamicLossScale,
  elementCount,
  type GradientTransformation,
  type LossScale,
  momentum,
  nesterov,
  type Schedule,
  sgd,
  stepDecay,
  warmUp,
} from "@skein/tensor-core";
import type { DataJob, Job, LearningRateJob, ModelJob, OptimizerJob, PrecisionJob } from "./job.ts";

// This file and build-exchange.ts turn names of a job into things; all others take the things.

export interface DataSet {
  readonly train: Records;
  readonly test: Records;
  /** What a wrong answer is: a digit, or a byte, for which the loss is told in bits too. */
  readonly predicts: "classes" | "bytes";
}

/** Load the samples into shared memory. @throws DataError when they are missing, truncated or altered. */
export const buildData = (job: DataJob): DataSet => {
  const limit = (train: Records, test: Records, predicts: DataSet["predicts"]): DataSet => ({
    train: takeRecords(train, job.trainSamples ?? train.count),
    test: takeRecords(test, job.testSamples ?? test.count),
    predicts,
  });
  switch (job.kind) {
    case "mnist": {
      const { train, test } = loadMnist({ folder: job.folder, from: import.meta.url });
      return limit(train, test, "classes");
    }
    case "fashion-mnist": {
      const { train, test } = loadFashionMnist({ folder: job.folder });
      return limit(train, test, "classes");
    }
    case "moby-dick": {
      const { train, valid } = splitText(loadMobyDick({ file: job.file, from: import.meta.url }), job.testFraction);
      return limit(textRecords(train, job.window), textRecords(valid, job.window), "bytes");
    }
  }
};

/** @param inputs the field `inputs` of the data set, whose shape fixes the first layer. */
export const buildModel = (job: ModelJob, { shape }: { readonly shape: readonly number[] }): Model => {
  switch (job.kind) {
    case "mlp":
      return mlp({ sizes: [elementCount(shape), ...job.hidden, mnistClasses] }) as Model;
    case "cnn":
      return cnn({
        imageSize: [shape[0]!, shape[1]!],
        inputChannels: shape[2]!,
        channels: job.channels,
        hidden: job.hidden,
        dropoutRate: job.dropout,
        numClasses: mnistClasses,
      }) as Model;
    case "resnet18":
      return resnet18({ inputChannels: shape[2]!, channels: job.channels, numClasses: mnistClasses }) as Model;
    case "gpt":
      return gpt({
        contextLength: shape[0]!,
        width: job.width,
        numLayers: job.layers,
        numHeads: job.heads,
        dropoutRate: job.dropout,
      }) as Model;
  }
};

const buildDecay = ({ decay, peak, final, factor, everySteps }: LearningRateJob, steps: number): Schedule => {
  switch (decay) {
    case "constant":
      return peak;
    case "cosine":
      return cosineDecay({ initial: peak, final, steps });
    case "step":
      return stepDecay({ initial: peak, factor, every: everySteps! });
  }
};

/** @param totalSteps steps of the whole run: where a cosine ends. */
export const buildLearningRate = (job: LearningRateJob, totalSteps: number): Schedule =>
  warmUp(job.warmupSteps, buildDecay(job, Math.max(1, totalSteps - job.warmupSteps)));

const buildRule = (job: OptimizerJob, learningRate: Schedule): GradientTransformation<unknown> => {
  switch (job.kind) {
    case "sgd":
      return sgd({ ...job, learningRate });
    case "momentum":
      return momentum({ ...job, learningRate });
    case "nesterov":
      return nesterov({ ...job, learningRate });
    case "adam":
      return adam({ ...job, learningRate });
    case "adamw":
      return adamw({ ...job, learningRate, mask: decayMatrices });
  }
};

export const buildOptimizer = ({ optimizer, learningRate, clipNorm }: Job, totalSteps: number): GradientTransformation<unknown> => {
  const rule = buildRule(optimizer, buildLearningRate(learningRate, totalSteps));
  return clipNorm === undefined ? rule : (chain(clipByGlobalNorm(clipNorm), rule) as GradientTransformation<unknown>);
};

/** The scale of the loss; none where gradients are f32. */
export const buildLossScale = (job: PrecisionJob): LossScale | undefined => {
  switch (job.kind) {
    case "f32":
      return undefined;
    case "mixed-f16":
      return dynamicLossScale({ initial: job.initialScale, growthInterval: job.growthInterval, minimum: Math.min(1, job.initialScale) });
  }
};
