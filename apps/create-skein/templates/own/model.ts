import { type Affine, dense, initDense, labelledModel } from "@skein/models";
import { relu, splitKey, type Tensor } from "@skein/tensor-core";
import { defineModel } from "skein-train";
import { z } from "zod";

/**
 * Computes class scores, [batch, classes], from features [batch, features], with dense layers and ReLU between them.
 */
export const scores = (layers: readonly Affine[], features: Tensor): Tensor =>
  layers.reduce((x, layer, index) => dense(layer, index === 0 ? x : relu(x)), features);

/**
 * A model consists of two functions of tensors: `init` creates parameters from a random key, and `apply` computes class
 * scores from inputs. Both functions are called once to trace their operations; the traced operations are compiled
 * together with their gradients. `labelledModel` adds the loss and the metrics of a classifier; `rowLossModel` accepts
 * your own loss.
 */
export default defineModel({
  // Options that a job may set under model.options. Checked before the run starts; errors contain the line in the job
  // file.
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
