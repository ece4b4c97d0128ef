import type { Tensor } from "@skein/tensor-core";
import type { Layer } from "./layer.ts";
import type { LayerRows } from "./layer-rows.ts";

/** What a layer has shown in one step. */
export interface LayerStatistic {
  /** Of the rows that it reads. */
  readonly input?: Tensor;
  /** Of the gradients of the rows that it gives. */
  readonly gradient?: Tensor;
}

/** Which side of a layer: what goes in, or what is carried back to its output. */
export type LayerSide = keyof LayerStatistic;

export const layerSides: readonly LayerSide[] = ["input", "gradient"];

/** Numbers of samples. */
export interface SampleCount {
  /** Number of samples that the loss is a mean over; gradient rows are multiplied by it. */
  readonly meanOver: number;
  /** Number of samples whose rows are looked at: all that the step computes, or some. */
  readonly taken: number;
}

/** What is gathered of one side of a layer, of the rows of all its uses. */
export type SideStatistic = (layer: Layer, rows: readonly LayerRows[], count: SampleCount) => Tensor;

/**
 * What is gathered of each layer. A gradient row is that of one sample's own loss: where the loss is the mean over B
 * samples, the rows carry 1/B, and the statistics undo it. So they are means over samples, which the mean over ranks
 * leaves what they are: they depend neither on the number of ranks nor on what part of the batch each has.
 */
export interface Statistic {
  /** How often the scale of the loss is in what is gathered of gradients, as a factor. */
  readonly degree: 1 | 2;
  /** Whether the rows of a sample must be told from those of another one. Default: false. */
  readonly isPerSample?: boolean;
  /** Left out where it is not asked for. */
  readonly input?: SideStatistic;
  readonly gradient?: SideStatistic;
  /** Dimensions of what is gathered of a side. */
  readonly shapeOf: (layer: Layer, side: LayerSide) => readonly number[];
}

export const rowCount = (rows: readonly LayerRows[]): number => rows.reduce((total, { count }) => total + count, 0);
