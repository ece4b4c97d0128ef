import { ConfigError, describeError } from "@skein/cli/node";
import type { Job } from "@skein/job/node";
import { inputsOf } from "@skein/models";
import { type Tensor, type TensorSpec, trace, type Traced } from "@skein/tensor-core";
import { excerpt, formatSpec } from "@skein/tensor-core/backend";
import { namedResults, type Weights } from "./forward-pass.ts";
import { resultSpecs } from "./result-specs.ts";
import { type AnyModel, batchSpecs, type DataSet } from "./task.ts";

/**
 * Format in which `evaluation.samples` displays samples. "classes", "values", "text": prediction of the model next to
 * the label. "tree": first numbers of all inputs and outputs, if there are no labels or the outputs have another
 * structure.
 */
export type SampleKind = "classes" | "values" | "text" | "tree";

/**
 * Requires that each output tensor of a forward pass has one row per sample. @throws ConfigError that names the first
 * output tensor with another number of rows.
 */
const requireRows = (traced: Traced, count: number, predicts: DataSet["predicts"]): void => {
  const results = Object.entries(namedResults<TensorSpec>(resultSpecs(traced), predicts));
  const rule = `a sample is shown by its row of the outputs, so each output tensor must be [${count}, …] for a batch of ${count}`;
  if (results.length === 0)
    throw new ConfigError([
      `evaluation.samples: the model's apply returns no tensor, but ${rule}; return the outputs to show, or remove evaluation.samples`,
    ]);
  const [path, wrong] = results.find(([, { shape }]) => shape[0] !== count) ?? [];
  if (path !== undefined)
    throw new ConfigError([
      `evaluation.samples: the model's apply returns as ${excerpt(path)} ${formatSpec(wrong!)}, but ${rule}; return a row per sample, or remove evaluation.samples`,
    ]);
};

/**
 * Traces the forward pass of a model for one held-out sample: from parameters, state and inputs to the outputs. With
 * one sample at a time, outputs depend neither on the rank's share of the samples nor on other samples of a batch.
 *
 * @param weights Specs of parameters and state.
 * @throws ConfigError if the model has no forward pass, if the pass fails for one sample, or if its outputs do not have
 * one row per sample.
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
        (own: unknown, modelState: unknown, inputs: Tensor) =>
          model.apply(own, modelState, inputs, { train: false })[0],
        [params, state, inputsOf(batchSpecs(test, count))] as never,
      );
    } catch (error) {
      const [fault, ...where] = describeError(error).message.split("\n");
      throw new ConfigError([
        `evaluation.samples: ${fault} (for the outputs of a batch of ${count}); correct that, or remove evaluation.samples`,
        ...where,
      ]);
    }
    requireRows(traced, count, predicts);
    return traced;
  };
  const traced = passOf(1);
  passOf(2); // with two samples, a dimension of size 1 is not mistaken for rows
  return traced;
};

/**
 * Returns the forward pass with which a job displays samples. Undefined: the job displays no samples, or the model is
 * sharded over ranks.
 */
export const samplePassOf = (
  { evaluation }: Pick<Job, "evaluation">,
  model: Pick<AnyModel, "apply" | "sharding">,
  data: Pick<DataSet, "test" | "predicts">,
  weights: Weights,
): Traced | undefined =>
  evaluation.samples === undefined || model.sharding !== undefined ? undefined : traceSamplePass(model, data, weights);

/** Returns the format in which samples are displayed, from the traced forward pass. */
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
