import { ArgumentError } from "@skein/tensor-core";

/** Sizes of a decoder-only transformer. Plain data, so users can describe other models of this family. */
export interface TransformerShape {
  readonly kind: "transformer";
  readonly name: string;
  /** Publication that states the sizes. */
  readonly source: string;
  readonly vocabulary: number;
  /** Maximum number of positions with which the model was trained; a hard limit for learned positions. */
  readonly contextLength: number;
  readonly width: number;
  readonly layers: number;
  readonly heads: number;
  /** Number of key/value heads: equal to `heads`, or smaller if groups of heads share keys and values. */
  readonly keyValueHeads: number;
  /** Hidden width of the feed-forward layer. */
  readonly hidden: number;
  /**
   * Whether the feed-forward layer is SwiGLU: a third matrix, whose output gates the output of the second matrix. If
   * false, the feed-forward layer is GELU with two matrices.
   */
  readonly gated: boolean;
  readonly norm: "layer" | "rms";
  readonly positions: "learned" | "rotary";
  /** Whether matrix products add a bias. */
  readonly biases: boolean;
  /** Whether the output head shares its matrix with the embedding. */
  readonly tiedHead: boolean;
}

/** A group of equal blocks of a residual network. The first block has the stride, and projects its shortcut. */
export interface ResidualStage {
  readonly blocks: number;
  readonly width: number;
  readonly stride: number;
}

/**
 * Sizes of a residual network of bottleneck blocks. A block has three convolutions: 1×1 to the width, 3×3, and 1×1 to
 * `expansion` times the width, each followed by batch normalization.
 */
export interface ResidualShape {
  readonly kind: "residual";
  readonly name: string;
  readonly source: string;
  /** Side length of the square images, in pixels. */
  readonly imageSide: number;
  readonly imageChannels: number;
  readonly classes: number;
  /**
   * Number of output channels of the first convolution, 7×7 with stride 2, which is followed by a 3×3 max pooling with
   * stride 2.
   */
  readonly stemWidth: number;
  readonly expansion: number;
  readonly stages: readonly ResidualStage[];
}

/** Sizes of a large model, from which flops and bytes are derived. */
export type ModelShape = TransformerShape | ResidualShape;

const checkSizes = (name: string, sizes: Readonly<Record<string, number>>): void => {
  for (const [size, value] of Object.entries(sizes))
    if (!Number.isSafeInteger(value) || value < 1)
      throw new ArgumentError(
        `the model "${name}" has ${size} ${value}, but a size must be a whole number from 1; correct ${size}`,
      );
};

const checkTransformer = (shape: TransformerShape): void => {
  const { name, vocabulary, contextLength, width, layers, heads, keyValueHeads, hidden } = shape;
  checkSizes(name, { vocabulary, contextLength, width, layers, heads, keyValueHeads, hidden });
  if (width % heads !== 0)
    throw new ArgumentError(
      `the model "${name}" has ${heads} heads for a width of ${width}; choose a number that divides the width`,
    );
  if (heads % keyValueHeads !== 0)
    throw new ArgumentError(
      `the model "${name}" has ${keyValueHeads} heads of keys and values for ${heads} heads; choose a number that divides the heads`,
    );
};

/**
 * Checks a shape.
 * @throws ArgumentError if a size is not a positive integer, or if heads do not divide evenly.
 */
export const checkShape = (shape: ModelShape): void => {
  if (shape.kind === "transformer") return checkTransformer(shape);
  const { name, imageSide, imageChannels, classes, stemWidth, expansion, stages } = shape;
  checkSizes(name, { imageSide, imageChannels, classes, stemWidth, expansion, stages: stages.length });
  for (const [index, { blocks, width, stride }] of stages.entries()) {
    const of = ` of stage ${index + 1}`;
    checkSizes(name, { [`blocks${of}`]: blocks, [`width${of}`]: width, [`stride${of}`]: stride });
  }
};
