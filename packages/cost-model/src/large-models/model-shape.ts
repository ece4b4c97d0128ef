import { ArgumentError } from "@skein/tensor-core";

/** A decoder-only transformer by its sizes; plain data, so that others of the family can be described. */
export interface TransformerShape {
  readonly kind: "transformer";
  readonly name: string;
  /** Where the sizes come from. */
  readonly source: string;
  readonly vocabulary: number;
  /** Positions that it was trained for; learned positions are no more than these. */
  readonly contextLength: number;
  readonly width: number;
  readonly layers: number;
  readonly heads: number;
  /** Heads of keys and values: as many as `heads`, or fewer that groups of heads share. */
  readonly keyValueHeads: number;
  /** Of the feed-forward part. */
  readonly hidden: number;
  /** SwiGLU: a third matrix whose output gates the second one's. Otherwise GELU. */
  readonly gated: boolean;
  readonly norm: "layer" | "rms";
  readonly positions: "learned" | "rotary";
  /** Whether products add a bias. */
  readonly biases: boolean;
  /** Whether the embedding is the matrix of the logits, too. */
  readonly tiedHead: boolean;
}

/** Equal blocks of a residual network. The first of them takes the stride, and projects its shortcut. */
export interface ResidualStage {
  readonly blocks: number;
  readonly width: number;
  readonly stride: number;
}

/**
 * A residual network of bottlenecks: 1×1 to the width, 3×3, 1×1 to `expansion` times the width, each followed by batch
 * normalisation.
 */
export interface ResidualShape {
  readonly kind: "residual";
  readonly name: string;
  readonly source: string;
  /** Images are square. */
  readonly imageSide: number;
  readonly imageChannels: number;
  readonly classes: number;
  /** Channels of the first convolution, 7×7 with stride 2; a maximum over 3×3 with stride 2 follows. */
  readonly stemWidth: number;
  readonly expansion: number;
  readonly stages: readonly ResidualStage[];
}

/** The sizes of a large model, from which flops and bytes follow. */
export type ModelShape = TransformerShape | ResidualShape;

const checkSizes = (name: string, sizes: Readonly<Record<string, number>>): void => {
  for (const [size, value] of Object.entries(sizes))
    if (!Number.isSafeInteger(value) || value < 1)
      throw new ArgumentError(`the model "${name}" has ${size} ${value}; a size is a whole number from 1`);
};

const checkTransformer = (shape: TransformerShape): void => {
  const { name, vocabulary, contextLength, width, layers, heads, keyValueHeads, hidden } = shape;
  checkSizes(name, { vocabulary, contextLength, width, layers, heads, keyValueHeads, hidden });
  if (width % heads !== 0)
    throw new ArgumentError(
      `the model "${name}" has ${heads} heads on a width of ${width}; choose heads that divide the width`,
    );
  if (heads % keyValueHeads !== 0)
    throw new ArgumentError(
      `the model "${name}" has ${keyValueHeads} heads of keys and values for ${heads} heads; choose a number that divides the heads`,
    );
};

/** @throws ArgumentError for sizes that are no positive whole numbers, or heads that do not divide what they share. */
export const checkShape = (shape: ModelShape): void => {
  if (shape.kind === "transformer") return checkTransformer(shape);
  const { name, imageSide, imageChannels, classes, stemWidth, expansion, stages } = shape;
  checkSizes(name, { imageSide, imageChannels, classes, stemWidth, expansion, stages: stages.length });
  for (const [index, { blocks, width, stride }] of stages.entries()) {
    const of = ` of stage ${index + 1}`;
    checkSizes(name, { [`blocks${of}`]: blocks, [`width${of}`]: width, [`stride${of}`]: stride });
  }
};
