import { add, ArgumentError, concat, full, multiply, reshape, type Tensor } from "@skein/tensor-core";
import { partsOf } from "../matrices.ts";
import { gramInBlocks } from "./factor-blocks.ts";
import type { Layer } from "./layer.ts";
import type { LayerRows } from "./layer-rows.ts";
import { type LayerSide, rowCount, type SideStatistic, type Statistic } from "./statistic.ts";

/**
 * Treatment of several positions per sample, such as pixels of an image or tokens of a text. `expand`: each position
 * counts as a sample. `reduce`: one row per sample, with the mean of the inputs and the sum of the gradients.
 *
 * Source: Eschenhagen et al. 2023, arXiv 2311.00636.
 */
export type Positions = "expand" | "reduce";

const sumOf = (terms: readonly Tensor[]): Tensor => terms.reduce((sum, one) => add(sum, one));

/** Extends a second moment by a row and a column for an input that is always 1. */
const withOnes = (moment: Tensor, mean: Tensor): Tensor => {
  const n = mean.shape[0]!;
  const right = concat([moment, reshape(mean, [n, 1])], { dim: 1 });
  return concat([right, concat([reshape(mean, [1, n]), full([1, 1], 1)], { dim: 1 })], { dim: 0 });
};

/** Returns, per sample, the sum of its rows over all positions and over all uses of the layer, [samples, width]. */
const perSample = (rows: readonly LayerRows[], samples: number): Tensor =>
  sumOf(rows.map((one) => one.totalPerSample(samples)));

const inputCovariance =
  ({ positions, blockSize }: Required<CovarianceOptions>): SideStatistic =>
  (layer, rows, { numUsed }) => {
    const count = rowCount(rows);
    const mean = (): Tensor => multiply(sumOf(rows.map((one) => one.total())), 1 / count);
    // Rows are one-hot, so their second moment is diagonal and equals their mean.
    if (layer.kind === "embedding") return mean();
    const parts = partsOf(layer.numInputs, blockSize);
    const momentOf = (matrices: readonly Tensor[], rowsInAll: number): Tensor =>
      multiply(sumOf(matrices.map((one) => gramInBlocks(one, parts))), 1 / rowsInAll);
    const [matrices, rowsInAll] =
      positions === "expand"
        ? [rows.map((one) => one.matrix()), count]
        : [[multiply(perSample(rows, numUsed), numUsed / count)], numUsed];
    if (layer.bias === undefined) return momentOf(matrices, rowsInAll);
    // If a factor has one block, the row and column of the bias are computed without copying all rows.
    if (parts.count === 1) return withOnes(momentOf(matrices, rowsInAll), mean());
    const ones = matrices.map((one) => concat([one, full([one.shape[0]!, 1], 1)], { dim: 1 }));
    return momentOf(ones, rowsInAll);
  };

const gradientCovariance =
  ({ positions, blockSize }: Required<CovarianceOptions>): SideStatistic =>
  (layer, rows, { meanOver, numUsed }) => {
    const parts = partsOf(layer.numOutputs, blockSize);
    return multiply(
      positions === "expand"
        ? sumOf(rows.map((one) => gramInBlocks(one.matrix(), parts)))
        : gramInBlocks(perSample(rows, numUsed), parts),
      meanOver ** 2 / numUsed,
    );
  };

/** Whether a layer's factor A (`input`) or G (`gradient`) is diagonal, and stored as a vector. */
export const isDiagonal = (layer: Pick<Layer, "kind">, side: "input" | "gradient"): boolean =>
  layer.kind === "embedding" && side === "input";

export interface CovarianceOptions {
  /** Treatment of several positions per sample, such as pixels or tokens: see `Positions`. Default: expand. */
  readonly positions?: Positions;
  /**
   * Maximum number of rows per factor block. Entries outside of the diagonal blocks are treated as 0. Default: no
   * blocks.
   */
  readonly blockSize?: number;
}

/**
 * Kronecker factors of each layer. `A`, [inputs, inputs], is the mean of `a aᵀ` over the rows that the layer reads,
 * with a row and a column for the bias. `G`, [outputs, outputs], is the mean over samples of `Σ g gᵀ`, summed over
 * positions. With S positions per sample, `A ⊗ G` is 1/S of the value obtained when each position counts as a sample.
 * For an embedding, A is diagonal, [inputs]: the frequency of each table row. A factor in blocks is [blocks, size,
 * size], with zeros after its last row.
 *
 * Cost: `inputs² · rows` and `outputs² · rows` multiplications, divided by the number of blocks; `n(n + 1)/2` numbers
 * sent per block.
 * @throws ArgumentError if an option is out of range.
 * @example
 * ```ts
 * const statistic = covarianceStatistic({ positions: "reduce" });
 * console.log(statistic.degree); // 2
 * ```
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

/**
 * Returns the shape of a factor: a diagonal, a matrix, or blocks of a matrix.
 *
 * @example
 * ```ts
 * console.log(factorShape({ kind: "linear", numInputs: 4, numOutputs: 2 }, "input")); // [4, 4]
 * ```
 */
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
