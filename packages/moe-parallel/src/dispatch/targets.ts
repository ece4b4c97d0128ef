// Shapes: T tokens of this rank, K choices per token, P ranks, E experts in placement order, e = E / P experts per
// rank, S expert rows per rank.
import {
  add,
  allGather,
  ArgumentError,
  axisIndex,
  cumsum,
  divide,
  gather,
  less,
  minimum,
  multiply,
  reshape,
  subtract,
  sum,
  type Tensor,
  where,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import type { Order } from "../order.ts";
import { before } from "./chunks.ts";
import type { DispatchSizes } from "./token-dispatcher.ts";

// A target is a global row number: 1 + S · rank + row. 0 means that there is no target, so zero padding after the rows
// of a ragged collective has no targets.

export interface Targets {
  /** Target of each entry, i32: positive number of a row on the ranks of the experts; 0 for an entry without a slot. */
  readonly targets_TK: Tensor;
  /** Number of rows from all ranks for each expert of this rank, i32. */
  readonly counts_e: Tensor;
}

/**
 * Computes the target row of each entry. Target rows are ordered by expert, then by source rank, then by slot, without
 * gaps. The source rank computes the target, so received rows can be placed without a sort, whatever their route.
 *
 * @param numRows S, number of expert rows per rank.
 * @param priority priority of the collective.
 * Cost: `4·E·(P − 1)` bytes of counts sent per rank, in one small all-gather.
 * @throws ArgumentError if the number of rows of all ranks exceeds the range of i32.
 */
export const targetsOf = (
  order: Order,
  { numExperts, axis }: DispatchSizes,
  { numRows, priority }: { readonly numRows: number; readonly priority: number },
): Targets => {
  const numRanks = axisSize(axis);
  const own = numExperts / numRanks;
  if (numRanks * numRows >= 2 ** 31)
    throw new ArgumentError(
      `dispatcher: ${numRanks} ranks with ${numRows} rows each exceed the ${2 ** 31 - 1} rows that an i32 can number; lower the capacity, or set copiesPerRank`,
    );
  const { experts_TK, slots_TK, kept_E } = order;
  const kept_PE = reshape(allGather(kept_E, axis, { priority }), [numRanks, numExperts]);
  const total_Pe = reshape(sum(kept_PE, { dims: 0 }), [numRanks, own]);
  const rank = axisIndex(axis);
  const ofEarlierRanks_E = gather(subtract(cumsum(kept_PE, { dim: 0 }), kept_PE), rank);
  const first_E = add(reshape(before(total_Pe), [numExperts]), ofEarlierRanks_E);
  const rows_TK = add(gather(first_E, experts_TK, { outside: "zero" }), slots_TK);
  // If not all rows fit, a later hop receives too many copies and fails. Until then, a row number is clamped to the
  // range of its rank, so that the copies are counted for the correct rank.
  const inRoom_TK = minimum(rows_TK, numRows - 1);
  const targets_TK = add(add(multiply(divide(experts_TK, own), numRows), inRoom_TK), 1);
  return { targets_TK: where(less(experts_TK, 0), 0, targets_TK), counts_e: gather(total_Pe, rank) };
};

/** Returns, for each target, the index of its rank along an axis with the given stride; −1 for no target. */
export const groupOf = (
  targets: Tensor,
  { numGroups, stride, numRows }: { readonly numGroups: number; readonly stride: number; readonly numRows: number },
): Tensor => {
  const count = divide(subtract(targets, 1), stride * numRows);
  const group = subtract(count, multiply(divide(count, numGroups), numGroups));
  return where(less(targets, 1), -1, group);
};

/** Returns the local row of each target on this rank; −1 for no target. */
export const rowOf = (targets: Tensor, numRows: number): Tensor => {
  const row = subtract(targets, 1);
  return where(less(targets, 1), -1, subtract(row, multiply(divide(row, numRows), numRows)));
};
