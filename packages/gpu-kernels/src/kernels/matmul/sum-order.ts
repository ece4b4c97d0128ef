import type { DeviceFacts } from "../../kernel.ts";
import type { MatmulVariant, Product, SumOrder } from "./product.ts";
import { type Splits, splitInner, whole } from "./split-inner.ts";
import { supportsMatrices } from "./subgroup-matrix.ts";

/** Number of rows, and number of columns, of the tile that the computation of the number of pieces assumes. */
const side = 64;
/** Number of workgroups that keeps a large GPU busy: about three for each of the 132 cores of the largest GPU. */
const wantedGroups = 384;
/**
 * Number of row tiles that is assumed for a product without a transposed first operand, whose rows are samples or
 * positions.
 */
const usualTiles = 32;
/** Minimum number of terms per piece: `minTerms` if the first operand is transposed, `minTermsOfRows` if not. */
const [minTerms, minTermsOfRows] = [128, 1024] as const;
const maxPieces = 64;
/** Granularity of piece lengths, as a number of terms. */
const step = 64;

/**
 * Returns the pieces into which a product's sums are split. The number of pieces must not depend on the number of rows
 * or matrices, because a row's result must be bitwise identical alone and in a batch. A transposed first operand occurs
 * in weight gradients, so the number of rows is assumed to equal the number of columns. For all other products, many
 * rows are assumed.
 */
export const splitsOf = (product: Product): Splits => {
  const { columns, inner, transposeA } = product;
  const tiles = Math.ceil(columns / side);
  const wanted = transposeA ? Math.ceil(wantedGroups / tiles ** 2) : Math.floor(wantedGroups / (usualTiles * tiles));
  const most = Math.floor(inner / (transposeA ? minTerms : minTermsOfRows));
  const pieces = Math.min(wanted, most, maxPieces);
  return pieces > 1 ? splitInner(product, pieces, step) : whole(product);
};

/**
 * Returns the order of additions on a device for products of this inner dimension, columns, layout and dtype. Does not
 * depend on the number of rows or matrices.
 */
export const sumOrderOf = (product: Product, facts: DeviceFacts): SumOrder => {
  if (supportsMatrices(product, facts)) return "by matrices";
  return !facts.software && splitsOf(product).count > 1 ? "in pieces" : "in order";
};

/**
 * Returns the pieces into which the device's rule splits the sums of a product. Software adapters do not split sums.
 */
export const splitsByRule = (product: Product, facts: DeviceFacts): Splits =>
  facts.software ? whole(product) : splitsOf(product);

/**
 * Whether a variant adds in the device's order for the product, so that each row of the result is bitwise identical to
 * the result of other variants in this order.
 */
export const keepsSumOrder = ({ sums }: MatmulVariant, product: Product, facts: DeviceFacts): boolean => {
  const order = sumOrderOf(product, facts);
  return sums === "by rule" ? order !== "by matrices" : sums === order;
};
