import { ModuleError } from "@skein/cli/node";
import { type Job, meshOf, samplesAtOnce } from "@skein/job/node";
import { inputsOf } from "@skein/models";
import { type AnyModel, batchSpecs, type TrainingData, type Weights } from "@skein/step/node";
import { formatShape, Tensor, trace } from "@skein/tensor-core";
import { givenName } from "./program-objects.ts";
import { moduleName } from "./load-module.ts";

/** Returns the name of a job's model for error messages. */
const nameOf = ({ model }: Pick<Job, "model">): string => {
  if (model.kind === "module") return moduleName("model", model);
  return model.kind === "program" ? givenName("model") : `model.kind ${model.kind}`;
};

/**
 * Requires that the number of logits matches the data. For classes, the number of logits must equal the number of
 * classes. For tokens, the number may exceed the vocabulary size, because vocabularies are padded. Models that declare
 * no logits, and sharded models, are not checked.
 *
 * @param weights specs of parameters and state.
 * @throws ModuleError that names both numbers; errors of the model's `apply`.
 */
export const requireLogits = (
  model: Pick<AnyModel, "apply" | "logits" | "sharding">,
  { train, predicts, classes }: Pick<TrainingData, "train" | "predicts" | "classes">,
  job: Job,
  { params, state }: Weights,
): void => {
  if (model.logits === undefined || model.sharding !== undefined || classes === undefined) return;
  let logits: unknown;
  trace(
    (own: unknown, modelState: unknown, inputs: Tensor) => {
      [logits] = model.apply(own, modelState, inputs, { train: false });
      return logits as Tensor;
    },
    [params, state, inputsOf(batchSpecs(train, samplesAtOnce(job)))] as never,
    { mesh: meshOf(job) },
  );
  if (!(logits instanceof Tensor) || logits.rank === 0) return; // the loss reports such an output
  const width = logits.shape.at(-1)!;
  const isText = predicts !== "classes";
  if (isText ? width >= classes : width === classes) return;
  throw new ModuleError(
    `${nameOf(job)}: apply returned logits ${formatShape(logits.shape)}, ${width} scores per row, but the data has ${classes} ${predicts}; make the last dimension ${isText ? "at least " : ""}${classes}, which is task.classes`,
  );
};
