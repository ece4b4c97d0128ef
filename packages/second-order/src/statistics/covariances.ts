import { add, ArgumentError, concat, full, matmul, multiply, reshape, type Tensor } from "@skein/tensor-core";
import type { Layer } from "./layer.ts";
import type { LayerRows } from "./layer-rows.ts";
import { rowCount, type SideStatistic, type Statistic } from "./statistic.ts";

/**
 * How the positions of a sample count, those of an image or a text: `expand` as if each was a sample, `reduce` as one
 * row, the mean of the inputs and the sum of the gradients.
 *
 * Source: Eschenhagen et al. 2023, arXiv 2311.00636.
 */
export type Positions = "expand" | "reduce";

const sumOf = (terms: readonly Tensor[]): Tensor => terms.reduce((sum, one) => add(sum, one));

/** `xᵀx` */
const gram = (x: Tensor): Tensor => matmul(x, x, { transposeA: true });

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
  (positions: Positions): SideStatistic =>
  (layer, rows, { taken }) => {
    const count = rowCount(rows);
    const mean = (): Tensor => multiply(sumOf(rows.map((one) => one.total())), 1 / count);
    // Rows of zeros with a single one: what they have in common is nothing but which one it is.
    if (layer.kind === "embedding") return mean();
    const moment =
      positions === "expand"
        ? multiply(sumOf(rows.map((one) => gram(one.matrix()))), 1 / count)
        : multiply(gram(perSample(rows, taken)), taken / count ** 2);
    return layer.bias === undefined ? moment : withOnes(moment, mean());
  };

const gradientCovariance =
  (positions: Positions): SideStatistic =>
  (_, rows, { samples, taken }) =>
    multiply(
      positions === "expand" ? sumOf(rows.map((one) => gram(one.matrix()))) : gram(perSample(rows, taken)),
      samples ** 2 / taken,
    );

/** Whether the factor of a side is diagonal, and kept as a vector. */
export const isDiagonal = (layer: Pick<Layer, "kind">, side: "input" | "gradient"): boolean =>
  layer.kind === "embedding" && side === "input";

/**
 * The Kronecker factors of each layer: `A`, the mean of `a aᵀ` over the rows that it reads, [inputs, inputs], with a
 * row and column for the bias; and `G`, [outputs, outputs], the mean over samples of the sum over their positions of `g
 * gᵀ`. Their product is that of S positions counted as S samples, over S. Of an embedding A is diagonal, the share of
 * each row of the table, [inputs].
 *
 * Cost: `inputs² · rows` and `outputs² · rows` multiplications; `n(n + 1)/2` numbers of each factor travel.
 * Source: Martens and Grosse 2015, arXiv 1503.05671; Grosse and Martens 2016, arXiv 1602.01407, for convolutions.
 */
export const covarianceStatistic = ({ positions = "expand" }: { readonly positions?: Positions } = {}): Statistic => {
  if (positions !== "expand" && positions !== "reduce")
    throw new ArgumentError(`covarianceStatistic: positions is ${String(positions)}; use expand or reduce`);
  return {
    degree: 2,
    isPerSample: positions === "reduce",
    input: inputCovariance(positions),
    gradient: gradientCovariance(positions),
    shapeOf: (layer, side) => {
      const size = side === "input" ? layer.numInputs : layer.numOutputs;
      return isDiagonal(layer, side) ? [size] : [size, size];
    },
  };
};
