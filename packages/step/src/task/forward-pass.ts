import { batchTree, type Leaves } from "@skein/data";
import { inputsOf } from "@skein/models";
import type { Tensor, TensorSpec } from "@skein/tensor-core";
import { leavesByPath } from "@skein/tensor-core/backend";
import type { AnyModel, Prediction } from "./task.ts";

/** Parameters and state of a model. */
export interface Weights {
  readonly params: unknown;
  readonly state: unknown;
}

/** Name of an output that is a single tensor, by kind of prediction. */
const resultNames: Readonly<Record<Prediction, string>> = {
  classes: "logits",
  bytes: "logits",
  tokens: "logits",
  values: "values",
  own: "outputs",
};

/**
 * Returns a function that computes the forward pass of a model from the leaves of a batch by path. The result is a
 * tensor or a tree of tensors. Traced.
 */
export const forwardPass =
  (model: Pick<AnyModel, "apply">) =>
  ({ params, state }: Weights, leaves: Leaves<Tensor>): unknown =>
    model.apply(params, state, inputsOf(batchTree(leaves)), { train: false })[0];

/**
 * Names outputs, or specs of outputs: a single tensor is named `logits`, `values` or `outputs`; tensors of a tree are
 * named by path.
 */
export const namedResults = <Leaf extends TensorSpec = Tensor>(outputs: unknown, predicts: Prediction): Leaves<Leaf> =>
  Object.fromEntries([...leavesByPath<Leaf>(outputs)].map(([path, leaf]) => [path || resultNames[predicts], leaf]));
