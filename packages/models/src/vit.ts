// Shapes: B batch, T patches and the class token, D width, H heads, F hidden width of the feed-forward layers, P height
// and width of a patch, C channels.
import {
  add,
  ArgumentError,
  broadcastTo,
  concat,
  type EmptyState,
  foldIn,
  formatShape,
  gelu,
  normal,
  reshape,
  scope,
  ShapeError,
  slice,
  type Tensor,
} from "@skein/tensor-core";
import { attentionBranch, attentionField, type AttentionParams } from "./attention-layer.ts";
import { layerNormStack, type TransformerBlockParams } from "./layer-norm-stack.ts";
import { type Affine, applyConv2d, initConv2d, pixels } from "./layers.ts";
import { labelledModel, type Model } from "./model.ts";
import { requireSizes } from "./require-sizes.ts";
import type { NormParams } from "./normalisation.ts";
import { initProjection, project, type Projection, transformerDeviation } from "./projection.ts";
import { applyBlocks, initBlocks } from "./transformer-block.ts";
import { type LayerNormTransformerOptions, requireDivisor, residualDeviation } from "./transformer-sizes.ts";

/** Sizes of a vision transformer and of the images that it processes. */
export interface VitOptions extends LayerNormTransformerOptions {
  /** Image size [rows, columns] in pixels. Pixels beyond the last whole patch are ignored. */
  readonly imageSize: readonly [number, number];
  /** P, height and width of a patch in pixels. */
  readonly patchSize: number;
  /** C, number of channels of the images. Default: 3. */
  readonly inputChannels?: number;
  readonly numClasses: number;
  /** Whether query, key and value have biases. Default: true. */
  readonly inputBias?: boolean;
}

/** Parameters of a vision transformer. */
export interface VitParams {
  /** Embedding of patches; its weight is [P, P, C, D]. */
  readonly patches: Affine;
  /** Embedding of the class token, [1, 1, D]. */
  readonly classToken: Tensor;
  /** Position embeddings, [1, T, D]. */
  readonly positions: Tensor;
  readonly blocks: readonly TransformerBlockParams<AttentionParams>[];
  readonly finalNorm: NormParams;
  readonly classifier: Projection;
}

/**
 * Vision transformer: the input sequence is a class token, followed by the patches of the image. The final hidden state
 * of the class token predicts the class. Inputs [B, rows, columns, C], f32 or bytes, with `imageSize` rows and columns.
 *
 * Parameters: `P²CD + D + D + TD + L·(4D² + 2DF + 9D + F) + 2D + classes·(D + 1)`; 86,567,656 for the base model with
 * 16×16 patches.
 *
 * @throws ArgumentError if sizes are not positive integers, the heads do not divide the width, or a patch is larger
 * than an image.
 * Source: Dosovitskiy et al. 2021, arXiv 2010.11929.
 */
export const vit = (options: VitOptions): Model<VitParams, EmptyState> => {
  const {
    imageSize: [rows, columns],
    patchSize,
    inputChannels = 3,
    width,
    numLayers,
    numHeads,
    hidden = 4 * width,
    numClasses,
    inputBias = true,
    activation = (x) => gelu(x),
    epsilon = 1e-12,
    recompute = "none",
  } = options;
  requireSizes("vit", { rows, columns, patchSize, inputChannels, width, numLayers, numHeads, hidden, numClasses });
  requireDivisor("vit", numHeads, width);
  if (patchSize > Math.min(rows, columns))
    throw new ArgumentError(
      `vit: a patch of ${patchSize} is larger than an image of ${rows}×${columns}; use smaller patches`,
    );
  const numPatches = Math.floor(rows / patchSize) * Math.floor(columns / patchSize);
  const deviation = residualDeviation(numLayers);
  const attention = attentionBranch({ width, numHeads, inputBias, outputBias: true, deviation });
  const sizes = { width, numLayers, numHeads, hidden, activation, epsilon, recompute };
  const stack = layerNormStack(sizes, attentionField(attention));
  const initialise = (key: Tensor, shape: readonly number[]): Tensor =>
    normal(key, shape, { deviation: transformerDeviation });

  return labelledModel({
    init: (key) => ({
      params: {
        patches: initConv2d(foldIn(key, 0), [patchSize, patchSize, inputChannels, width], { initialise }),
        classToken: initialise(foldIn(key, 1), [1, 1, width]),
        positions: initialise(foldIn(key, 2), [1, numPatches + 1, width]),
        blocks: initBlocks(stack, key, 4),
        finalNorm: stack.norm.init(),
        classifier: initProjection(foldIn(key, 3), [width, numClasses], { bias: true }),
      },
      state: {},
    }),
    apply: (params, state, images, { train }) => {
      const [numRows, ...size] = images.shape;
      if (formatShape(size) !== formatShape([rows, columns, inputChannels]))
        throw new ShapeError(
          "vit",
          `images ${formatShape(images.shape)} do not fit: [B, ${rows}, ${columns}, ${inputChannels}] is required, the size of the position embeddings; resize them`,
        );
      const embedded_BTD = scope("embedding", () => {
        const patches = applyConv2d(params.patches, pixels(images), { stride: patchSize });
        const sequence = reshape(patches, [numRows!, numPatches, width]);
        const token = broadcastTo(params.classToken, [numRows!, 1, width]);
        return add(concat([token, sequence], { dim: 1 }), params.positions);
      });
      const [x_BTD] = applyBlocks(stack, params.blocks, embedded_BTD, { train });
      return [
        scope("head", () => {
          const first_BD = reshape(slice(x_BTD, [0, 0], [numRows!, 1]), [numRows!, width]);
          return project(params.classifier, stack.norm.apply(params.finalNorm, first_BD));
        }),
        state,
      ];
    },
  });
};
