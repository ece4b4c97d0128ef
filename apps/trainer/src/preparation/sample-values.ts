import type { Job } from "@skein/job/node";
import type { AnyModel, TrainingData } from "@skein/step/node";
import { requireLabels, requireTokens } from "../modules/checked-values.ts";
import { givenName } from "../modules/program-objects.ts";
import { moduleName } from "../modules/load-module.ts";

/**
 * Returns the name of the job's data for error messages about labels and tokens. Undefined if the loader of the data
 * already checks labels and tokens.
 */
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

/** Returns the vocabulary size of a job's model. Undefined for a user-defined model. */
const vocabularyOf = ({ model }: Pick<Job, "model">, { predicts, classes }: TrainingData): number | undefined => {
  if (model.kind === "gpt") return predicts === "classes" ? undefined : classes;
  if (model.kind !== "pretrained") return undefined;
  const size = model.config?.["vocab_size"];
  return typeof size === "number" ? size : undefined;
};

/**
 * Throws unless all labels and tokens of user data are within the classes of the data and the vocabulary of the model.
 *
 * @throws ModuleError that names the first invalid value and its sample.
 */
export const requireValues = (job: Pick<Job, "data" | "model">, data: TrainingData, model: AnyModel): void => {
  const name = ownName(job);
  if (name === undefined) return;
  requireLabels(data, model.logits, name);
  const vocabulary = vocabularyOf(job, data);
  if (vocabulary !== undefined) requireTokens(data, vocabulary, name);
};
