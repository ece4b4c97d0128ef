import { inputsOf } from "@skein/models";
import { type Tensor, type TensorSpec, trace, type Traced } from "@skein/tensor-core";
import { excerpt, formatSpec } from "@skein/tensor-core/backend";
import { ConfigError, describeError } from "../errors.ts";
import type { Job } from "../job/job.ts";
import { namedResults, type Weights } from "./forward-pass.ts";
import { resultSpecs } from "./result-specs.ts";
import { type AnyModel, batchSpecs, type DataSet } from "./task.ts";

/**
 * As what `evaluation.samples` shows samples: as a class, as values or as a text beside the label; or, where there are
 * no labels or the outputs are none of these, as the first numbers of all that the model is given and makes of it.
 */
export type SampleKind = "classes" | "values" | "text" | "tree";

/** @throws ConfigError that names the first result without a row for each sample. */
const requireRows = (traced: Traced, count: number, predicts: DataSet["predicts"]): void => {
  const results = Object.entries(namedResults<TensorSpec>(resultSpecs(traced), predicts));
  const rule = `a sample is shown by its row of the outputs, so each tensor of them must be [${count}, …] for a batch of ${count}`;
  if (results.length === 0)
    throw new ConfigError([
      `evaluation.samples: the model's apply gives no tensor, but ${rule}; have it give what is to be seen, or leave evaluation.samples out`,
    ]);
  const [path, wrong] = results.find(([, { shape }]) => shape[0] !== count) ?? [];
  if (path !== undefined)
    throw new ConfigError([
      `evaluation.samples: the model's apply gives as ${excerpt(path)} ${formatSpec(wrong!)}, but ${rule}; have it give a row for each sample, or leave evaluation.samples out`,
    ]);
};

/**
 * Trace the forward pass of a model for one held-out sample: from parameters, state and inputs to the outputs. Of one,
 * whatever share of them a rank shows; and what a model makes of a sample does not depend on others of its batch.
 *
 * @param weights specs of them.
 * @throws ConfigError where the model has no forward pass, where it cannot be given one sample, and where its outputs
 * have no row for it.
 */
export const traceSamplePass = (
  model: Pick<AnyModel, "apply">,
  { test, predicts }: Pick<DataSet, "test" | "predicts">,
  { params, state }: Weights,
): Traced => {
  const passOf = (count: number): Traced => {
    let traced: Traced;
    try {
      traced = trace(
        (own: unknown, moved: unknown, inputs: Tensor) => model.apply(own, moved, inputs, { train: false })[0],
        [params, state, inputsOf(batchSpecs(test, count))] as never,
      );
    } catch (error) {
      const [fault, ...where] = describeError(error).message.split("\n");
      throw new ConfigError([
        `evaluation.samples: ${fault} (asked for the outputs of a batch of ${count}); mend that, or leave evaluation.samples out`,
        ...where,
      ]);
    }
    requireRows(traced, count, predicts);
    return traced;
  };
  const traced = passOf(1);
  passOf(2); // a dimension that is 1 by chance is no row
  return traced;
};

/** The pass that a job needs to show samples; none where it shows none, or ranks share the model out. */
export const samplePassOf = (
  { evaluation }: Pick<Job, "evaluation">,
  model: Pick<AnyModel, "apply" | "sharding">,
  data: Pick<DataSet, "test" | "predicts">,
  weights: Weights,
): Traced | undefined =>
  evaluation.samples === undefined || model.sharding !== undefined ? undefined : traceSamplePass(model, data, weights);

/** As what samples are shown, of which a forward pass makes this. */
export const sampleKindOf = (
  pass: Traced,
  { test: { fields }, predicts, classes }: Pick<DataSet, "test" | "predicts" | "classes">,
): SampleKind => {
  if (pass.outputs !== "leaf" || predicts === "own") return "tree";
  const { shape } = resultSpecs<TensorSpec>(pass);
  const [given, label] = [fields["inputs"]!.shape, fields["labels"]!.shape];
  switch (predicts) {
    case "values":
      return "values";
    case "classes":
      return label.length === 0 && shape.length === 2 && shape[1]! >= classes! ? "classes" : "tree";
    case "bytes":
    case "tokens": {
      const isText = given.length === 1 && label[0] === given[0] && shape[1] === given[0] && shape.length === 3;
      return isText && label.length === 1 && given[0]! > 0 ? "text" : "tree";
    }
  }
};
