import type { Tensor } from "@skein/tensor-core";
import type { Layer } from "./layer.ts";
import type { LayerRows } from "./layer-rows.ts";

/** Statistics of one layer in one step. */
export interface LayerStatistic {
  /** Statistic of the input rows. */
  readonly input?: Tensor;
  /** Statistic of the output rows' gradients. */
  readonly gradient?: Tensor;
}

/** Side of a layer: its inputs, or the gradients of its outputs. */
export type LayerSide = keyof LayerStatistic;

export const layerSides: readonly LayerSide[] = ["input", "gradient"];

/** Sample counts of a step. */
export interface SampleCount {
  /** Number of samples over which the loss is averaged. Gradient rows are multiplied by this number. */
  readonly meanOver: number;
  /** Number of samples whose rows are used: all samples of the step, or some of them. */
  readonly numUsed: number;
}

/**
 * Function that computes a statistic of a layer's inputs or output gradients from the rows of all uses of the layer.
 */
export type SideStatistic = (layer: Layer, rows: readonly LayerRows[], count: SampleCount) => Tensor;

/**
 * Statistic to collect for each layer. Each gradient row counts as the gradient of a single sample's loss: if the loss
 * is a mean over B samples, the rows contain a factor 1/B, which the statistic removes. So statistics are means over
 * samples that do not depend on the number of ranks or the split of the batch, and they can be averaged over ranks.
 */
export interface Statistic {
  /** Exponent of the loss scale in the gradient statistic: 1 if it is linear in gradients, 2 if it is quadratic. */
  readonly degree: 1 | 2;
  /** Whether the statistic needs to know the sample of each row. Default: false. */
  readonly isPerSample?: boolean;
  /** Statistic of the inputs. Absent: not collected. */
  readonly input?: SideStatistic;
  readonly gradient?: SideStatistic;
  /** Returns the shape of the statistic of a layer's inputs, or of its output gradients. */
  readonly shapeOf: (layer: Layer, side: LayerSide) => readonly number[];
}

export const rowCount = (rows: readonly LayerRows[]): number => rows.reduce((total, { count }) => total + count, 0);
