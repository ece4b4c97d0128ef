// Shapes: T tokens of this rank, K choices of a token, P ranks, E experts in the order of their places, e = E / P
// experts of a rank, S rows of each rank for its experts.
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

// A target names a row of all ranks by one number: 1 + S · rank + row. 0 names none, so that the zeros behind the rows
// that a ragged collective brings do so.

export interface Targets {
  /** i32 */
  readonly targets_TK: Tensor;
  /** i32, rows of all ranks for each expert of this one. */
  readonly counts_e: Tensor;
}

/**
 * Where each entry's row is to stand with its expert: by expert, then by source rank, then by slot, without gaps. Since
 * the source knows it, whatever comes can be put there without a sort, whichever way it took.
 *
 * @param numRows S. @param priority of the collective.
 * Cost: `4·E·(P − 1)` bytes of counts sent per rank, in one small all-gather.
 * @throws ArgumentError where rows of all ranks are more than an i32 counts.
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
      `dispatcher: ${numRanks} ranks with room for ${numRows} rows each are more than the ${2 ** 31 - 1} that can be told apart; lower the capacity, or bound copiesPerRank`,
    );
  const { experts_TK, slots_TK, kept_E } = order;
  const kept_PE = reshape(allGather(kept_E, axis, { priority }), [numRanks, numExperts]);
  const total_Pe = reshape(sum(kept_PE, { dims: 0 }), [numRanks, own]);
  const rank = axisIndex(axis);
  const ofEarlierRanks_E = gather(subtract(cumsum(kept_PE, { dim: 0 }), kept_PE), rank);
  const first_E = add(reshape(before(total_Pe), [numExperts]), ofEarlierRanks_E);
  const rows_TK = add(gather(first_E, experts_TK, { outside: "zero" }), slots_TK);
  // Where rows do not all fit, so many copies are on their way that one leg has no room for them, and refuses. Until
  // then a row stays on its own rank, so that they are counted as what they are.
  const inRoom_TK = minimum(rows_TK, numRows - 1);
  const targets_TK = add(add(multiply(divide(experts_TK, own), numRows), inRoom_TK), 1);
  return { targets_TK: where(less(experts_TK, 0), 0, targets_TK), counts_e: gather(total_Pe, rank) };
};

/** The rank of each target along an axis of which `stride` ranks lie side by side, −1 for none. */
export const groupOf = (
  targets: Tensor,
  { numGroups, stride, numRows }: { readonly numGroups: number; readonly stride: number; readonly numRows: number },
): Tensor => {
  const count = divide(subtract(targets, 1), stride * numRows);
  const group = subtract(count, multiply(divide(count, numGroups), numGroups));
  return where(less(targets, 1), -1, group);
};

/** The row of each target of this rank, −1 for none. */
export const rowOf = (targets: Tensor, numRows: number): Tensor => {
  const row = subtract(targets, 1);
  return where(less(targets, 1), -1, subtract(row, multiply(divide(row, numRows), numRows)));
};
