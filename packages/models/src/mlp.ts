import { ArgumentError, type EmptyState, reshape, relu, scope, splitKey, type Tensor } from "@skein/tensor-core";
import { headNormal, heNormal } from "./initialisers.ts";
import { type Affine, dense, initDense, pixels } from "./layers.ts";
import { labelledModel, type Model } from "./model.ts";

export interface MlpOptions {
  /** Widths of all layers from input to logits, such as [784, 512, 512, 10]. */
  readonly sizes: readonly number[];
  /** Activation function between layers. Default: ReLU. */
  readonly activation?: (x: Tensor) => Tensor;
}

/** Parameters of an MLP: weight [in, out] and bias [out] of each layer. */
export interface MlpParams {
  readonly layers: readonly Affine[];
}

/**
 * Multilayer perceptron: dense layers with an activation function between them. Inputs [B, …] are flattened; bytes are
 * scaled to 0…1.
 *
 * Parameters: `Σ (sizes[i] + 1) · sizes[i + 1]`.
 * @throws ArgumentError if there are fewer than two sizes.
 */
export const mlp = ({ sizes, activation = relu }: MlpOptions): Model<MlpParams, EmptyState> => {
  if (sizes.length < 2)
    throw new ArgumentError(
      `mlp: sizes [${sizes.join(", ")}] describe no layer; give at least the input size and the number of classes`,
    );
  const numLayers = sizes.length - 1;
  return labelledModel({
    init: (key) => {
      const keys = splitKey(key, numLayers);
      return {
        params: {
          layers: keys.map((own, i) =>
            initDense(own, [sizes[i]!, sizes[i + 1]!], { initialise: i === numLayers - 1 ? headNormal : heNormal }),
          ),
        },
        state: {},
      };
    },
    apply: ({ layers }, state, inputs) => {
      const x_BI = reshape(pixels(inputs), [inputs.shape[0]!, -1]);
      const logits = layers.reduce(
        (x, layer, i) => scope(`dense-${i}`, () => dense(layer, i === 0 ? x : activation(x))),
        x_BI,
      );
      return [logits, state];
    },
  });
};
