import { randomKey, type Tensor, trace } from "@skein/tensor-core";
import { ConfigError } from "../errors.ts";
import type { Job } from "../job/job.ts";
import { meshOf, samplesAtOnce } from "../job/mesh.ts";
import { batchSpecs, type TrainingData, type AnyModel, type BatchTree } from "../task/task.ts";

/** The model of a job, in whose loss labels are smoothed as the job says. */
export const withSmoothing = (model: AnyModel, { labelSmoothing }: Pick<Job, "labelSmoothing">): AnyModel =>
  labelSmoothing === undefined
    ? model
    : {
        ...model,
        loss: (params, state, batch, context) => model.loss(params, state, batch, { ...context, labelSmoothing }),
      };

/**
 * Require that the loss of a job's model smooths labels where the job says so. A loss of the user's own need not look
 * at what it is told: it is traced with and without.
 *
 * @throws ConfigError where both are the same; what the model's functions throw.
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
      `labelSmoothing: ${job.labelSmoothing} of the targets is to be spread over all classes, but the model's loss is its own and does not look at context.labelSmoothing; heed it there, take the loss of labelledModel() of @skein/models, or leave labelSmoothing out`,
    ]);
};
