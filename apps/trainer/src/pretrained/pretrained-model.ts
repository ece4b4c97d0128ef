import { ConfigError } from "@skein/cli/node";
import type { Job, MemoryJob, PretrainedJob } from "@skein/job/node";
import type { Model } from "@skein/models";
import { modelOf, withNewHead } from "@skein/pretrained";
import { isLabelled, layoutOf, type Task } from "@skein/step/node";
import { randomKey, SkeinError, type Tensor, type TensorSpec, trace } from "@skein/tensor-core";

/** Returns the shape of a model's logits for a batch of one sample. */
const logitsOf = (model: Model, { dtype, shape }: TensorSpec): readonly number[] => {
  let logits: Tensor | undefined;
  trace(
    (key: Tensor, inputs: Tensor) => {
      const { params, state } = model.init(key);
      [logits] = model.apply(params, state, inputs, { train: false });
      return logits;
    },
    [randomKey(0) as unknown as Tensor, { dtype, shape: [1, ...shape] } as unknown as Tensor],
  );
  return logits!.shape;
};

/**
 * Requires that a pretrained model fits the task of the samples.
 * @throws ConfigError if the model does not fit.
 */
const requireTask = (model: Model, { config }: PretrainedJob, task: Task): void => {
  const what = `model.folder: the ${String(config?.["model_type"])} of its config.json`;
  if (!isLabelled(task))
    throw new ConfigError([
      `${what} needs samples of inputs and labels, one tensor each, but these are ${layoutOf({ fields: task.leaves })}; use other data, or {kind: module} for your own model`,
    ]);
  const { inputs, labels, predicts, classes } = task;
  const description = `inputs are ${inputs.dtype}[${inputs.shape.join(", ")}] with ${predicts}`;
  let shape: readonly number[];
  try {
    shape = logitsOf(model, inputs);
  } catch (error) {
    if (!(error instanceof SkeinError)) throw error;
    throw new ConfigError([`${what} does not fit these samples, whose ${description}: ${error.message}`]);
  }
  const width = shape.at(-1)!;
  if (predicts === "values" || predicts === "own" || shape.length !== labels.shape.length + 2)
    throw new ConfigError([
      `${what} returns scores [${shape.slice(1).join(", ")}] for a sample, but the ${description}, and labels [${labels.shape.join(", ")}]; use another model or other data`,
    ]);
  const isText = predicts !== "classes";
  if (isText ? width >= classes! : width === classes) return;
  throw new ConfigError([
    isText
      ? `${what} has ${width} tokens, but the tokens of this data go up to ${classes! - 1}; use the tokenizer that the model was trained with, or weights: none with a config.json of vocab_size: ${classes}`
      : `${what} has ${width} classes, but the data has ${classes}; give it a new head with head: new, or use data of ${width} classes`,
  ]);
};

/**
 * Replaces the configured head of a model by a new head for the classes of the data, if the job requests a new head.
 *
 * @throws PretrainedError if the model has no classification head; ConfigError if the data has no classes.
 */
export const withHeadFor = (job: Job, { predicts, classes }: Task): Job => {
  const { model } = job;
  if (model.kind !== "pretrained" || model.head === undefined) return job;
  if (predicts !== "classes")
    throw new ConfigError([
      `model.head: a new head predicts classes, but the labels of this data are ${predicts}; remove head, or use data with a class for each sample`,
    ]);
  return { ...job, model: { ...model, config: withNewHead(model.config ?? {}, classes!) } };
};

/**
 * Builds the model of a checkpoint in the Hugging Face layout.
 *
 * @throws PretrainedError if the configuration is not supported; ConfigError if the model does not fit the samples.
 */
export const pretrainedModel = (job: PretrainedJob, task: Task, { recompute }: MemoryJob): Model => {
  const model = modelOf(job.config ?? {}, { recompute: recompute === "blocks" ? "blocks" : "none" });
  requireTask(model, job, task);
  return model;
};
