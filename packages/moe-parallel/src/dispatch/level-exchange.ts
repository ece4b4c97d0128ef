// Shapes: N copies of X tokens on this rank (N / X of each token), D token width, K targets per copy, g ranks along an
// axis, M maximum number of copies from one rank to another rank, R = g·M rows of the send and receive buffers.
import {
  add,
  arange,
  axisIndex,
  cast,
  cumsum,
  equal,
  gather,
  greater,
  multiply,
  raggedAllToAll,
  reduceMax,
  reshape,
  subtract,
  sum,
  type Tensor,
  where,
} from "@skein/tensor-core";
import { entriesOfRows, fromRows, type RowTokens, tokensOf, toRows } from "../rows.ts";
import type { Level } from "./levels.ts";
import { groupOf } from "./targets.ts";

/** Copies of tokens between two hops. */
export interface Copies {
  readonly x_XD: Tensor;
  /** Targets of each copy, i32; 0 for no target. See `targetsOf`. */
  readonly targets_NK: Tensor;
  /** Weight of each copy in the sum for its token, f32. Default: 1. */
  readonly weights_N?: Tensor;
}

/** Data that a hop stores so that the copies can be returned to their senders. */
export interface Hop extends RowTokens {
  /** Number of copies sent to each rank along the axis, including this rank, i32. */
  readonly leaving_g: Tensor;
  /** Number of copies received from each rank, i32. */
  readonly arrived_g: Tensor;
}

/**
 * Returns the send-buffer row of each copy for each rank along the axis: i32 [N, g], −1 if the copy is not sent to the
 * rank. The rows for one rank are contiguous.
 */
const leavingRows = (needs_Ng: Tensor, room: number): Tensor => {
  const numGroups = needs_Ng.shape[1]!;
  const index_Ng = subtract(cumsum(needs_Ng, { dim: 0 }), needs_Ng);
  return where(greater(needs_Ng, 0), add(index_Ng, multiply(arange(numGroups), room)), -1);
};

/**
 * Sends copies along an axis. Each rank along the axis represents a part of the mesh. A copy is sent to every rank
 * whose part contains a target of the copy. Received copies contain only the targets in this rank's part.
 *
 * @param room M, maximum number of copies from one rank to another rank.
 * @param numRows number of expert rows per rank.
 * Cost per rank: two ragged all-to-alls that send `4·(D + K)` bytes per copy to another rank, and `8·(g − 1)` bytes of
 * counts; N·K·g comparisons.
 */
export const sendCopies = (
  { x_XD, targets_NK, weights_N }: Copies,
  level: Level,
  { room, numRows }: { readonly room: number; readonly numRows: number },
): { readonly copies: Copies; readonly hop: Hop } => {
  const { axis, numGroups, priority } = level;
  const [numCopies, numTargets] = targets_NK.shape as [number, number];
  const sides = { ...level, numRows };
  const groups_NK1 = reshape(groupOf(targets_NK, sides), [numCopies, numTargets, 1]);
  const needs_Ng = reduceMax(cast(equal(groups_NK1, arange(numGroups)), "i32"), { dims: 1 });
  const leaving_g = sum(needs_Ng, { dims: 0 });
  const copies_R = tokensOf(entriesOfRows(leavingRows(needs_Ng, room), numGroups * room), numGroups);
  const tokens_R = tokensOf(copies_R, numCopies / x_XD.shape[0]!);

  const { x, rows: arrived_g } = raggedAllToAll(toRows(x_XD, { tokens_R }), leaving_g, axis, { priority });
  const leavingTargets_RK = gather(targets_NK, copies_R, { outside: "zero" });
  const targets_RK = raggedAllToAll(leavingTargets_RK, leaving_g, axis, { priority }).x;
  const isHere_RK = equal(groupOf(targets_RK, sides), axisIndex(axis));
  return {
    copies: { x_XD: x, targets_NK: where(isHere_RK, targets_RK, 0) },
    hop: {
      tokens_R,
      ...(weights_N !== undefined && { weights_R: gather(weights_N, copies_R, { outside: "zero" }) }),
      leaving_g,
      arrived_g,
    },
  };
};

/**
 * Sends the results of copies back, and sums them per token.
 *
 * @param y_RD results, in the row order of the received copies.
 * @returns f32 [X, D].
 * Cost: `4·D` bytes per received copy.
 */
export const returnCopies = (y_RD: Tensor, hop: Hop, { axis, priority }: Level, numTokens: number): Tensor =>
  fromRows(raggedAllToAll(y_RD, hop.arrived_g, axis, { priority }).x, hop, numTokens);
