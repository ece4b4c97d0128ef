import { add, ArgumentError, concat, full, multiply, reshape, type Tensor } from "@skein/tensor-core";
import { partsOf } from "../matrices.ts";
import { gramInBlocks } from "./factor-blocks.ts";
import type { Layer } from "./layer.ts";
import type { LayerRows } from "./layer-rows.ts";
import { type LayerSide, rowCount, type SideStatistic, type Statistic } from "./statistic.ts";

/**
 * How the positions of a sample count, those of an image or a text: `expand` as if each was a sample, `reduce` as one
 * row, the mean of the inputs and the sum of the gradients.
 *
 * Source: Eschenhagen et al. 2023, arXiv 2311.00636.
 */
export type Positions = "expand" | "reduce";

const sumOf = (terms: readonly Tensor[]): Tensor => terms.reduce((sum, one) => add(sum, one));

/** A second moment with the row and column of an input that is always 1. */
const withOnes = (moment: Tensor, mean: Tensor): Tensor => {
  const n = mean.shape[0]!;
  const right = concat([moment, reshape(mean, [n, 1])], { dim: 1 });
  return concat([right, concat([reshape(mean, [1, n]), full([1, 1], 1)], { dim: 1 })], { dim: 0 });
};

/** Per sample the sum over all positions of all uses, [samples, width]. */
const perSample = (rows: readonly LayerRows[], samples: number): Tensor =>
  sumOf(rows.map((one) => one.totalPerSample(samples)));

const inputCovariance =
  ({ positions, blockSize }: Required<CovarianceOptions>): SideStatistic =>
  (layer, rows, { taken }) => {
    const count = rowCount(rows);
    const mean = (): Tensor => multiply(sumOf(rows.map((one) => one.total())), 1 / count);
    // Rows of zeros with a single one: what they have in common is nothing but which one it is.
    if (layer.kind === "embedding") return mean();
    const parts = partsOf(layer.numInputs, blockSize);
    const momentOf = (matrices: readonly Tensor[], rowsInAll: number): Tensor =>
      multiply(sumOf(matrices.map((one) => gramInBlocks(one, parts))), 1 / rowsInAll);
    const [matrices, rowsInAll] =
      positions === "expand"
        ? [rows.map((one) => one.matrix()), count]
        : [[multiply(perSample(rows, taken), taken / count)], taken];
    if (layer.bias === undefined) return momentOf(matrices, rowsInAll);
    // Whole, its row and column are known without a copy of all rows.
    if (parts.count === 1) return withOnes(momentOf(matrices, rowsInAll), mean());
    const ones = matrices.map((one) => concat([one, full([one.shape[0]!, 1], 1)], { dim: 1 }));
    return momentOf(ones, rowsInAll);
  };

const gradientCovariance =
  ({ positions, blockSize }: Required<CovarianceOptions>): SideStatistic =>
  (layer, rows, { meanOver, taken }) => {
    const parts = partsOf(layer.numOutputs, blockSize);
    return multiply(
      positions === "expand"
        ? sumOf(rows.map((one) => gramInBlocks(one.matrix(), parts)))
        : gramInBlocks(perSample(rows, taken), parts),
      meanOver ** 2 / taken,
    );
  };

/** Whether the factor of a side is diagonal, and kept as a vector. */
export const isDiagonal = (layer: Pick<Layer, "kind">, side: "input" | "gradient"): boolean =>
  layer.kind === "embedding" && side === "input";

export interface CovarianceOptions {
  /** Default: expand. */
  readonly positions?: Positions;
  /** Most rows of a block of a factor: what lies outside of the blocks on its diagonal is taken as 0. Default: all. */
  readonly blockSize?: number;
}

/**
 * The Kronecker factors of each layer: `A`, the mean of `a aᵀ` over the rows that it reads, [inputs, inputs], with a
 * row and column for the bias; and `G`, [outputs, outputs], the mean over samples of the sum over their positions of `g
 * gᵀ`. Their product is that of S positions counted as S samples, over S. Of an embedding A is diagonal, the share of
 * each row of the table, [inputs]. A factor in blocks is [blocks, size, size], with zeros after its last row.
 *
 * Cost: `inputs² · rows` and `outputs² · rows` multiplications, over the number of blocks; `n(n + 1)/2` numbers of each
 * block travel.
 * @throws ArgumentError for options out of range.
 * Source: Martens and Grosse 2015, arXiv 1503.05671; Grosse and Martens 2016, arXiv 1602.01407, for convolutions;
 * Zhang, Shi, Wang and Li 2022, arXiv 2206.15143, for blocks.
 */
export const covarianceStatistic = ({
  positions = "expand",
  blockSize = Infinity,
}: CovarianceOptions = {}): Statistic => {
  if (positions !== "expand" && positions !== "reduce")
    throw new ArgumentError(`covarianceStatistic: positions is ${String(positions)}; use expand or reduce`);
  if (!(blockSize >= 1) || (blockSize !== Infinity && !Number.isInteger(blockSize)))
    throw new ArgumentError(`covarianceStatistic: blockSize is ${blockSize}; use a whole number of rows, such as 512`);
  const options = { positions, blockSize };
  return {
    degree: 2,
    isPerSample: positions === "reduce",
    input: inputCovariance(options),
    gradient: gradientCovariance(options),
    shapeOf: (layer: Layer, side: LayerSide) => factorShape(layer, side, blockSize),
  };
};

/** Dimensions of a factor: a diagonal, a matrix, or blocks of one. */
export const factorShape = (
  layer: Pick<Layer, "kind" | "numInputs" | "numOutputs">,
  side: LayerSide,
  blockSize: number = Infinity,
): readonly number[] => {
  const length = side === "input" ? layer.numInputs : layer.numOutputs;
  if (isDiagonal(layer, side)) return [length];
  const { count, size } = partsOf(length, blockSize);
  return count === 1 ? [size, size] : [count, size, size];
};
