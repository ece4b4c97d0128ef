import type { Job } from "../job/job.ts";
import { requireLabels, requireTokens } from "../modules/checked-values.ts";
import { givenName } from "../modules/given-thing.ts";
import { moduleName } from "../modules/load-module.ts";
import type { AnyModel, TrainingData } from "../task/task.ts";

/** Name of a job's data in errors, if their labels or tokens are the user's own; undefined if loaders check them. */
const ownName = ({ data }: Pick<Job, "data">): string | undefined => {
  switch (data.kind) {
    case "module":
      return moduleName("data", data);
    case "program":
      return givenName("data");
    case "numpy":
      return "data";
    default:
      return undefined;
  }
};

/** Number of input tokens that a job's model has an embedding of; undefined for a user's model. */
const vocabularyOf = ({ model }: Pick<Job, "model">, { predicts, classes }: TrainingData): number | undefined => {
  if (model.kind === "gpt") return predicts === "classes" ? undefined : classes;
  if (model.kind !== "pretrained") return undefined;
  const size = model.config?.["vocab_size"];
  return typeof size === "number" ? size : undefined;
};

/**
 * Require that labels and tokens of a user's data are among those that the data and the model have.
 *
 * @throws ModuleError that names the first other one and its sample.
 */
export const requireValues = (job: Pick<Job, "data" | "model">, data: TrainingData, model: AnyModel): void => {
  const name = ownName(job);
  if (name === undefined) return;
  requireLabels(data, model.logits, name);
  const vocabulary = vocabularyOf(job, data);
  if (vocabulary !== undefined) requireTokens(data, vocabulary, name);
};
