// Shapes: E experts, P ranks, e = E / P experts of a rank, M room for rows from one rank to another, N = P·M.
import {
  add,
  arange,
  ArgumentError,
  axisIndex,
  cast,
  concat,
  divide,
  equal,
  full,
  gather,
  invertPermutation,
  less,
  logicalAnd,
  mapTree,
  multiply,
  permuteRows,
  raggedAllToAll,
  reshape,
  scatterAdd,
  subtract,
  sum,
  type Tensor,
  where,
  zeros,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { checkCounts } from "../options.ts";
import { expertsPerRank } from "../placed-experts.ts";
import { placementOfPlaces } from "./expert-places.ts";
import { rankOfSlot } from "./placement-lookups.ts";

export interface MoveExpertsOptions {
  /** i32 [E], place of each expert as rows lie. */
  readonly before_E: Tensor;
  /** i32 [E], place of each expert as rows shall lie. */
  readonly after_E: Tensor;
  /** Axis of the mesh over whose ranks the experts lie spread. Default: "expert". */
  readonly axis?: string;
  /**
   * M, most experts that one rank sends to another: see `mostMovesOfPair`. A run that needs more fails with an
   * `ArgumentError`. Default: e, which is always enough, but takes the memory of all experts.
   */
  readonly room?: number;
}

/**
 * How many experts the ranks of that pair exchange that exchanges most, one way: the room that a move needs.
 *
 * @param before @param after place of each expert.
 * @throws ArgumentError unless each expert has a place of its own, and experts divide over ranks.
 */
export const mostMovesOfPair = (before: readonly number[], after: readonly number[], numRanks: number): number => {
  const [from, to] = [placementOfPlaces(before, numRanks), placementOfPlaces(after, numRanks)];
  if (before.length !== after.length)
    throw new ArgumentError(
      `mostMovesOfPair: places of ${before.length} experts before and of ${after.length} after; both are of the same experts`,
    );
  const counts = new Map<number, number>();
  before.forEach((place, expert) => {
    const [source, target] = [rankOfSlot(from, place), rankOfSlot(to, after[expert]!)];
    const pair = source * numRanks + target;
    if (source !== target) counts.set(pair, (counts.get(pair) ?? 0) + 1);
  });
  return Math.max(0, ...counts.values());
};

/** Of each entry, how many of its group come before it in order. @param groups_e i32. @param order_e i32, distinct. */
const numBefore = (groups_e: Tensor, order_e: Tensor): Tensor => {
  const count = groups_e.shape[0]!;
  const [column, row] = [
    [count, 1],
    [1, count],
  ] as const;
  const comesBefore_ee = logicalAnd(
    equal(reshape(groups_e, row), reshape(groups_e, column)),
    less(reshape(order_e, row), reshape(order_e, column)),
  );
  return sum(cast(comesBefore_ee, "i32"), { dims: -1 });
};

/**
 * Move what ranks have of experts to where the experts shall lie. Traced: one graph for all places with the same room.
 *
 * Each rank sends exactly those rows whose expert changes its rank, by one ragged all-to-all for each tensor, and puts
 * what came and what stayed into the order of its new places. Bytes stay as they are, so a move there and back gives
 * the same bits. All ranks of the axis call it with the same places.
 *
 * Cost: an expert's bytes for each that leaves, and 4·(P − 1) bytes of counts per tensor, sent per rank; memory of N
 * rows for what leaves and again for what arrives; e² comparisons.
 *
 * @param tree tensors [e, …] of any dtype, stacked by place: parameters, and what an optimizer keeps for them.
 * @returns the tree by the new places, in the same shapes.
 * @throws ArgumentError where tensors are not of e rows, or the room is no whole number from 1.
 * @example const moved = moveExperts({ experts: params.experts, moments }, { before_E, after_E });
 */
export const moveExperts = <Tree>(
  tree: Tree,
  { before_E, after_E, axis = "expert", ...options }: MoveExpertsOptions,
): Tree => {
  const numRanks = axisSize(axis);
  const own = expertsPerRank(before_E.shape[0]!, axis);
  const { room = own } = options;
  checkCounts("moveExperts", { room });
  const rank = axisIndex(axis);
  const first = multiply(rank, own);
  const places_e = add(first, arange(own));
  // Of each row that lies here: the place that it goes to, and the rank of that.
  const target_e = gather(after_E, gather(invertPermutation(before_E), places_e));
  const targetRank_e = divide(target_e, own);
  // Of each place here: the place that its row comes from, and the rank of that.
  const source_e = gather(before_E, gather(invertPermutation(after_E), places_e));
  const sourceRank_e = divide(source_e, own);

  // Rows that stay have no slot among those that leave.
  const leaves_e = where(equal(targetRank_e, rank), numRanks, targetRank_e);
  const slot_e = add(multiply(leaves_e, room), numBefore(targetRank_e, target_e));
  const row_N = scatterAdd(full([numRanks * room], -1, "i32"), slot_e, add(arange(own), 1));
  const leaving_P = scatterAdd(zeros([numRanks], "i32"), leaves_e, full([own], 1, "i32"));
  // Rows of a rank arrive in the order of their new places.
  const arrived_e = add(add(multiply(sourceRank_e, room), numBefore(sourceRank_e, places_e)), own);
  const taken_e = where(equal(sourceRank_e, rank), subtract(source_e, first), arrived_e);

  return mapTree(tree, (x: Tensor, path) => {
    if (x.shape[0] !== own)
      throw new ArgumentError(
        `moveExperts: "${path}" is [${x.shape.join(", ")}], but a rank has ${own} experts; give tensors with a row for each`,
      );
    if (numRanks === 1) return permuteRows(x, taken_e);
    const { x: arrived } = raggedAllToAll(gather(x, row_N, { outside: "zero" }), leaving_P, axis);
    return gather(concat([x, arrived]), taken_e);
  }) as Tree;
};
