// Shapes: T tokens, D token width, E experts, K choices per token, N = T·K entries (entry t·K + k is choice k of token
// t), R rows to send.
import {
  add,
  arange,
  divide,
  full,
  gather,
  less,
  multiply,
  reshape,
  scatterAdd,
  type Tensor,
  where,
  zeros,
} from "@skein/tensor-core";
import type { Order } from "./order.ts";

/** Source token and weight of each row, used to send rows and to return results. */
export interface RowTokens {
  /** Token of each row, i32; −1 for an empty row. */
  readonly tokens_R: Tensor;
  /** Weight of the returned row, f32; 0 for an empty row. Default: 1. */
  readonly weights_R?: Tensor;
}

/**
 * Returns the row of each entry if the rows of an expert are contiguous: i32 [T, K], −1 for an entry without a slot. An
 * entry without a slot has expert −1 and slot −1, and its first row counts as 0, so the sum is −1.
 *
 * @param firstRow_E first row of each expert, i32.
 */
export const rowsOf = ({ experts_TK, slots_TK }: Order, firstRow_E: Tensor): Tensor =>
  add(gather(firstRow_E, experts_TK, { outside: "zero" }), slots_TK);

/**
 * Returns the entry of each row: i32 [R], −1 for an empty row.
 *
 * @param rows_N row of each entry, all different, i32 of any shape. An entry with a value outside 0 … R − 1 has no row.
 * Cost: one pass over entries and rows.
 */
export const entriesOfRows = (rows_N: Tensor, numRows: number): Tensor => {
  const numEntries = rows_N.shape.reduce((product, size) => product * size, 1);
  return scatterAdd(full([numRows], -1, "i32"), reshape(rows_N, [numEntries]), add(arange(numEntries), 1));
};

/** Returns the token index of each entry, for entries in token order with `perToken` entries per token; −1 stays −1. */
export const tokensOf = (entries: Tensor, perToken: number): Tensor =>
  perToken === 1 ? entries : where(less(entries, 0), -1, divide(entries, perToken));

/**
 * Returns the token and the weight of each row.
 *
 * @param rows_TK row of each entry, all different, i32. An entry with a value outside 0 … R − 1 has no row.
 * @param weights_TK f32. Default: 1.
 * Cost: a few passes over N and R numbers.
 */
export const assignRows = (rows_TK: Tensor, weights_TK: Tensor | undefined, numRows: number): RowTokens => {
  const entries_R = entriesOfRows(rows_TK, numRows);
  return {
    tokens_R: tokensOf(entries_R, rows_TK.shape[1]!),
    ...(weights_TK && { weights_R: gather(reshape(weights_TK, [-1]), entries_R, { outside: "zero" }) }),
  };
};

/** Gathers tokens into rows for the experts: f32 [R, D], with zeros in empty rows. */
export const toRows = (x_TD: Tensor, { tokens_R }: RowTokens): Tensor => gather(x_TD, tokens_R, { outside: "zero" });

/**
 * Inverse of `toRows`: returns the weighted sum of each token's rows, f32 [T, D]; 0 for a token without rows. Rows are
 * added in row order, so that results for the same input are bitwise identical. Empty rows are ignored, even if they
 * contain NaN.
 */
export const fromRows = (y_RD: Tensor, { tokens_R, weights_R }: RowTokens, numTokens: number): Tensor =>
  scatterAdd(
    zeros([numTokens, y_RD.shape[1]!]),
    tokens_R,
    weights_R === undefined ? y_RD : multiply(y_RD, reshape(weights_R, [-1, 1])),
  );
