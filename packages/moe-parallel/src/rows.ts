// Shapes: T tokens, D width of a token, E experts, K choices of a token, N = T·K entries (entry t·K + k is choice k of
// token t), R rows in which the tokens leave.
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

/** What each row holds, and what brings it back. */
export interface RowTokens {
  /** i32, token of each row; −1 where the row is empty. */
  readonly tokens_R: Tensor;
  /** f32, what comes back in the row counts; 0 where the row is empty. Default: 1. */
  readonly weights_R?: Tensor;
}

/**
 * The row of each entry, where rows of an expert lie side by side: i32 [T, K], −1 for an entry without a slot, which
 * has no expert to begin from either.
 *
 * @param firstRow_E i32, where those of each expert begin.
 */
export const rowsOf = ({ experts_TK, slots_TK }: Order, firstRow_E: Tensor): Tensor =>
  add(gather(firstRow_E, experts_TK, { outside: "zero" }), slots_TK);

/**
 * Which entry each row is for: i32 [R], −1 where the row is empty.
 *
 * @param rows_N i32, the row of each entry, all different; an entry outside 0 … R − 1 has none. Of any shape.
 * Cost: each entry and each row once.
 */
export const entriesOfRows = (rows_N: Tensor, numRows: number): Tensor => {
  const numEntries = rows_N.shape.reduce((product, size) => product * size, 1);
  return scatterAdd(full([numRows], -1, "i32"), reshape(rows_N, [numEntries]), add(arange(numEntries), 1));
};

/** Of entries that lie `perToken` side by side for each token, the token; −1 stays. */
export const tokensOf = (entries: Tensor, perToken: number): Tensor =>
  perToken === 1 ? entries : where(less(entries, 0), -1, divide(entries, perToken));

/**
 * Which token each row holds, and what it counts.
 *
 * @param rows_TK i32, the row of each entry, all different; an entry outside 0 … R − 1 has none.
 * @param weights_TK f32. Default: 1.
 * Cost: a few passes over N and R numbers.
 */
export const layOut = (rows_TK: Tensor, weights_TK: Tensor | undefined, numRows: number): RowTokens => {
  const entries_R = entriesOfRows(rows_TK, numRows);
  return {
    tokens_R: tokensOf(entries_R, rows_TK.shape[1]!),
    ...(weights_TK && { weights_R: gather(reshape(weights_TK, [-1]), entries_R, { outside: "zero" }) }),
  };
};

/** Rows of the experts: f32 [R, D], zeros where a row is empty. */
export const toRows = (x_TD: Tensor, { tokens_R }: RowTokens): Tensor => gather(x_TD, tokens_R, { outside: "zero" });

/**
 * The inverse order: of each token the weighted sum of its rows, f32 [T, D], 0 where it has none. Rows are added in
 * their own order, so that the same input gives the same bits; what an empty row holds goes nowhere.
 */
export const fromRows = (y_RD: Tensor, { tokens_R, weights_R }: RowTokens, numTokens: number): Tensor =>
  scatterAdd(
    zeros([numTokens, y_RD.shape[1]!]),
    tokens_R,
    weights_R === undefined ? y_RD : multiply(y_RD, reshape(weights_R, [-1, 1])),
  );
