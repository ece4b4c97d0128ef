// Shapes: E experts, P ranks, e = E / P experts per rank, M maximum number of rows from one rank to another rank, N =
// P·M.
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
import { expertsPerRank } from "../rank-experts.ts";
import { placementFromPositions } from "./expert-positions.ts";
import { rankOfSlot } from "./placement-lookups.ts";

export interface MoveExpertsOptions {
  /** Current position of each expert, i32 [E]. */
  readonly before_E: Tensor;
  /** New position of each expert, i32 [E]. */
  readonly after_E: Tensor;
  /** Mesh axis over whose ranks experts are distributed. Default: "expert". */
  readonly axis?: string;
  /**
   * M, maximum number of experts that one rank sends to another rank: see `maxMovesPerPair`. A run that exceeds M fails
   * with an `ArgumentError`. Default: e, which is always enough, but allocates memory for all experts.
   */
  readonly room?: number;
}

/**
 * Returns the maximum number of experts that any rank sends to any other rank: the `room` that a move needs.
 *
 * @param before current position of each expert. @param after new position of each expert.
 * @throws ArgumentError unless all experts have different positions, and experts are divisible by ranks.
 * @example
 * ```ts
 * console.log(maxMovesPerPair([0, 1, 2, 3], [2, 1, 0, 3], 2)); // 1
 * ```
 */
export const maxMovesPerPair = (before: readonly number[], after: readonly number[], numRanks: number): number => {
  const [from, to] = [placementFromPositions(before, numRanks), placementFromPositions(after, numRanks)];
  if (before.length !== after.length)
    throw new ArgumentError(
      `maxMovesPerPair: positions of ${before.length} experts before and of ${after.length} after; both must be of the same experts`,
    );
  const counts = new Map<number, number>();
  before.forEach((position, expert) => {
    const [source, target] = [rankOfSlot(from, position), rankOfSlot(to, after[expert]!)];
    const pair = source * numRanks + target;
    if (source !== target) counts.set(pair, (counts.get(pair) ?? 0) + 1);
  });
  return Math.max(0, ...counts.values());
};

/**
 * Returns, for each entry, the number of entries in the same group with a smaller order number.
 *
 * @param groups_e group of each entry, i32.
 * @param order_e order number of each entry, i32, all different.
 */
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
 * Moves the data of experts to the ranks of their new positions. Traced: one graph can be used for all placements with
 * the same room.
 *
 * Each rank sends exactly the rows whose expert changes rank, by one ragged all-to-all per tensor, and arranges
 * received and remaining rows in the order of the new positions. Bytes are not changed, so a move and its inverse
 * restore the same bits. All ranks of the axis must pass the same positions.
 *
 * Cost per rank: the bytes of each expert that leaves, and 4·(P − 1) bytes of counts per tensor, are sent; a send
 * buffer and a receive buffer of N rows; e² comparisons.
 *
 * @param tree tensors [e, …] of any dtype, stacked by position: parameters and their optimizer state.
 * @returns the tree in the order of the new positions, with the same shapes.
 * @throws ArgumentError if a tensor does not have e rows, or `room` is not a positive integer.
 * @example
 * ```ts
 * const move = (weight_E: Tensor, before_E: Tensor, after_E: Tensor) => moveExperts(weight_E, { before_E, after_E });
 * const positions = (of: readonly number[]) => NdArray.from(of, [4], "i32");
 * const weights = NdArray.from([10, 11, 12, 13]);
 * const moved = await evaluate(move, referenceBackend())(weights, positions([0, 1, 2, 3]), positions([2, 1, 0, 3]));
 * console.log(moved.toNumbers()); // [12, 11, 10, 13]
 * ```
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
  const positions_e = add(first, arange(own));
  // For each local row: its new position, and the rank of the new position.
  const target_e = gather(after_E, gather(invertPermutation(before_E), positions_e));
  const targetRank_e = divide(target_e, own);
  // For each local position: the old position of its new row, and the rank of the old position.
  const source_e = gather(before_E, gather(invertPermutation(after_E), positions_e));
  const sourceRank_e = divide(source_e, own);

  // Rows that stay on this rank get no slot in the send buffer.
  const leaves_e = where(equal(targetRank_e, rank), numRanks, targetRank_e);
  const slot_e = add(multiply(leaves_e, room), numBefore(targetRank_e, target_e));
  const row_N = scatterAdd(full([numRanks * room], -1, "i32"), slot_e, add(arange(own), 1));
  const leaving_P = scatterAdd(zeros([numRanks], "i32"), leaves_e, full([own], 1, "i32"));
  // Rows from one rank are received in the order of their new positions.
  const arrived_e = add(add(multiply(sourceRank_e, room), numBefore(sourceRank_e, positions_e)), own);
  const taken_e = where(equal(sourceRank_e, rank), subtract(source_e, first), arrived_e);

  return mapTree(tree, (x: Tensor, path) => {
    if (x.shape[0] !== own)
      throw new ArgumentError(
        `moveExperts: "${path}" is [${x.shape.join(", ")}], but a rank has ${own} experts; give tensors with one row per expert`,
      );
    if (numRanks === 1) return permuteRows(x, taken_e);
    const { x: arrived } = raggedAllToAll(gather(x, row_N, { outside: "zero" }), leaving_P, axis);
    return gather(concat([x, arrived]), taken_e);
  }) as Tree;
};
