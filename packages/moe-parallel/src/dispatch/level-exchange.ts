// Shapes: N copies of tokens on this rank, of X tokens (N / X of each), D width of a token, K targets of a copy, g
// ranks along an axis, M room for copies from one rank to another, R = g·M rows in which they leave, and in which
// others come.
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

/** Copies of tokens on their way. */
export interface Copies {
  readonly x_XD: Tensor;
  /** i32, the rows that a copy is for, see `targetsOf`. */
  readonly targets_NK: Tensor;
  /** f32, what each copy counts in the sum of its token. Default: 1. */
  readonly weights_N?: Tensor;
}

/** What brings copies back over one axis. */
export interface Leg extends RowTokens {
  /** i32, copies that went to each rank along the axis, this one included. */
  readonly leaving_g: Tensor;
  /** i32, copies that came from each. */
  readonly arrived_g: Tensor;
}

/** Rows of each copy for each rank along the axis: i32 [N, g], −1 where it does not go. Those of a rank close up. */
const leavingRows = (needs_Ng: Tensor, room: number): Tensor => {
  const numGroups = needs_Ng.shape[1]!;
  const place_Ng = subtract(cumsum(needs_Ng, { dim: 0 }), needs_Ng);
  return where(greater(needs_Ng, 0), add(place_Ng, multiply(arange(numGroups), room)), -1);
};

/**
 * Send copies on along an axis: one to each rank there whose side of the mesh any of its targets lies on. What arrives
 * keeps the targets on this rank's side alone.
 *
 * @param room M. @param numRows of each rank for its experts.
 * Cost: `4·(D + K)` bytes per copy that goes to another rank, and `8·(g − 1)` bytes of counts, sent per rank, in two
 * ragged all-to-alls; N·K·g comparisons.
 */
export const sendOn = (
  { x_XD, targets_NK, weights_N }: Copies,
  level: Level,
  { room, numRows }: { readonly room: number; readonly numRows: number },
): { readonly copies: Copies; readonly leg: Leg } => {
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
    leg: {
      tokens_R,
      ...(weights_N !== undefined && { weights_R: gather(weights_N, copies_R, { outside: "zero" }) }),
      leaving_g,
      arrived_g,
    },
  };
};

/**
 * Bring back what copies have become, and add it up by token.
 *
 * @param y_RD in the rows in which they came.
 * @returns f32 [X, D].
 * Cost: as many copies as came, `4·D` bytes each.
 */
export const bringBack = (y_RD: Tensor, leg: Leg, { axis, priority }: Level, numTokens: number): Tensor =>
  fromRows(raggedAllToAll(y_RD, leg.arrived_g, axis, { priority }).x, leg, numTokens);
