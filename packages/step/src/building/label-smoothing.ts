import { ConfigError } from "@skein/cli/node";
import { type Job, meshOf, samplesAtOnce } from "@skein/job/node";
import { randomKey, type Tensor, trace } from "@skein/tensor-core";
import { batchSpecs, type TrainingData, type AnyModel, type BatchTree } from "../task/task.ts";

/** Returns the model with label smoothing in its loss, if the job sets `labelSmoothing`. */
export const withSmoothing = (model: AnyModel, { labelSmoothing }: Pick<Job, "labelSmoothing">): AnyModel =>
  labelSmoothing === undefined
    ? model
    : {
        ...model,
        loss: (params, state, batch, context) => model.loss(params, state, batch, { ...context, labelSmoothing }),
      };

/**
 * Requires that the model's loss smooths labels if the job sets `labelSmoothing`. A user loss may ignore the option, so
 * the loss is traced with and without smoothing, and the two graphs are compared.
 *
 * @throws ConfigError if both graphs are equal. Errors thrown by the model's functions are passed on.
 */
export const requireSmoothing = (model: AnyModel, { train }: Pick<TrainingData, "train">, job: Job): void => {
  if (job.labelSmoothing === undefined) return;
  const graphOf = (own: AnyModel): string =>
    JSON.stringify(
      trace(
        (key: Tensor, batch: BatchTree) => {
          const { params, state } = own.init(key);
          return own.loss(params, state, batch, { train: true, key })[0];
        },
        [randomKey(0) as unknown as Tensor, batchSpecs(train, samplesAtOnce(job)) as never],
        { mesh: meshOf(job) },
      ).graph,
    );
  if (graphOf(model) === graphOf(withSmoothing(model, job)))
    throw new ConfigError([
      `labelSmoothing is ${job.labelSmoothing}, but the model's own loss ignores context.labelSmoothing; use context.labelSmoothing in the loss, use the loss of labelledModel() of @skein/models, or leave labelSmoothing out`,
    ]);
};
