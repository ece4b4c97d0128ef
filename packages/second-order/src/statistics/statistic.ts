import type { Tensor } from "@skein/tensor-core";
import type { Layer } from "./layer.ts";
import type { LayerRows } from "./layer-rows.ts";

/** Statistics of one layer in one step. */
export interface LayerStatistic {
  /** Statistic of the rows that the layer reads. */
  readonly input?: Tensor;
  /** Statistic of the gradients of the rows that the layer computes. */
  readonly gradient?: Tensor;
}

/** Side of a layer: its inputs, or the gradients of its outputs. */
export type LayerSide = keyof LayerStatistic;

export const layerSides: readonly LayerSide[] = ["input", "gradient"];

/** Numbers of samples. */
export interface SampleCount {
  /** Number of samples in the mean of the loss; gradient rows are multiplied by it. */
  readonly meanOver: number;
  /** Number of samples whose rows are used: all samples that the step computes, or some of them. */
  readonly numUsed: number;
}

/** Computes the statistic of one side of a layer from the rows of all its uses. */
export type SideStatistic = (layer: Layer, rows: readonly LayerRows[], count: SampleCount) => Tensor;

/**
 * Statistic to collect for each layer. A gradient row is that of a single sample's loss: if the loss is a mean over B
 * samples, the rows contain a factor 1/B, and the statistics remove it. So statistics are means over samples,
 * independent of the number of ranks and of the split of the batch, and they can be averaged over ranks.
 */
export interface Statistic {
  /** Power of the loss scale in the statistic of gradients. */
  readonly degree: 1 | 2;
  /** Whether rows must be assigned to samples. Default: false. */
  readonly isPerSample?: boolean;
  /** Statistic of the inputs. Absent: not needed. */
  readonly input?: SideStatistic;
  readonly gradient?: SideStatistic;
  /** Returns the shape of the statistic of a side. */
  readonly shapeOf: (layer: Layer, side: LayerSide) => readonly number[];
}

export const rowCount = (rows: readonly LayerRows[]): number => rows.reduce((total, { count }) => total + count, 0);
