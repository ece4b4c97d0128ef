import { type Affine, dense, initDense, labelledModel } from "@skein/models";
import { relu, splitKey, type Tensor } from "@skein/tensor-core";
import { defineModel } from "skein-train";
import { z } from "zod";

/** Scores of the classes, [batch, classes], of features [batch, features]: dense layers with ReLU between them. */
export const scores = (layers: readonly Affine[], features: Tensor): Tensor =>
  layers.reduce((x, layer, index) => dense(layer, index === 0 ? x : relu(x)), features);

/**
 * A model is two functions of tensors: `init` makes parameters from a random key, `apply` makes scores from inputs.
 * Both are called once, to see what they compute; what comes of it is compiled, with its gradients. `labelledModel`
 * adds the loss of a classifier and what it is judged by; `rowLossModel` takes any loss of yours.
 */
export default defineModel({
  // What a job may set under model.options: checked, with the line of what is wrong, before anything runs.
  options: z.strictObject({
    hidden: z.array(z.int().min(1)).default([32]).describe("Width of each layer between the first and the last."),
  }),
  create: (task, { hidden }) => {
    const sizes = [task.inputs.shape[0]!, ...hidden, task.classes!];
    return labelledModel({
      init: (key) => {
        const keys = splitKey(key, sizes.length - 1);
        return { params: keys.map((each, i) => initDense(each, [sizes[i]!, sizes[i + 1]!])), state: {} };
      },
      apply: (layers, state, features) => [scores(layers, features), state],
    });
  },
});
