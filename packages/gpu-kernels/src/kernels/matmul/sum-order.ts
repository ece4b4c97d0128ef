import type { DeviceFacts } from "../../kernel.ts";
import type { MatmulVariant, Product, SumOrder } from "./product.ts";
import { type Splits, splitInner, whole } from "./split-inner.ts";
import { supportsMatrices } from "./subgroup-matrix.ts";

/** Side of the tiles that pieces are counted for. */
const side = 64;
/** Workgroups that keep a large GPU busy: more than the 132 cores of the largest, a few on each. */
const wantedGroups = 384;
/** Tiles of rows that a product is taken to have if its rows are samples or positions. */
const usualTiles = 32;
/** Fewest terms of a piece. */
const [fewestTerms, fewestTermsOfRows] = [128, 1024] as const;
const mostPieces = 64;
/** Pieces are multiples of so many terms. */
const step = 64;

/**
 * Pieces of the sums of a product. Their number must not follow from the number of rows or matrices: a row has the same
 * bits alone and among others. A transposed first operand is that of a weight gradient, so as many rows are assumed as
 * there are columns; otherwise many.
 */
export const splitsOf = (product: Product): Splits => {
  const { columns, inner, transposeA } = product;
  const tiles = Math.ceil(columns / side);
  const wanted = transposeA ? Math.ceil(wantedGroups / tiles ** 2) : Math.floor(wantedGroups / (usualTiles * tiles));
  const most = Math.floor(inner / (transposeA ? fewestTerms : fewestTermsOfRows));
  const pieces = Math.min(wanted, most, mostPieces);
  return pieces > 1 ? splitInner(product, pieces, step) : whole(product);
};

/**
 * The order in which a device adds up products of this inner dimension, columns, layout and dtype. It does not follow
 * from the number of rows or matrices.
 */
export const sumOrderOf = (product: Product, facts: DeviceFacts): SumOrder => {
  if (supportsMatrices(product, facts)) return "by matrices";
  return !facts.software && splitsOf(product).count > 1 ? "in pieces" : "in order";
};

/** Pieces of the sums by the order of the device. */
export const splitsByRule = (product: Product, facts: DeviceFacts): Splits =>
  facts.software ? whole(product) : splitsOf(product);

/** Whether a variant adds in the order that the device has for the product, so that rows keep their bits. */
export const keepsSumOrder = ({ sums }: MatmulVariant, product: Product, facts: DeviceFacts): boolean => {
  const order = sumOrderOf(product, facts);
  return sums === "by rule" ? order !== "by matrices" : sums === order;
};
