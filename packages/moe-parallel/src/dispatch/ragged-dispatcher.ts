// Shapes: D width of a token, P ranks, E experts, e = E / P experts of a rank, C slots of an expert for tokens of one
// rank, M room for rows from one rank to another, R = S = P·M rows.
import {
  add,
  allToAll,
  arange,
  argsort,
  cast,
  cumsum,
  greaterEqual,
  invertPermutation,
  multiply,
  permuteRows,
  raggedAllToAll,
  reshape,
  subtract,
  sum,
  type Tensor,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { checkCounts } from "../options.ts";
import type { DispatchSizes, TokenDispatcher } from "./token-dispatcher.ts";

export interface RaggedDispatcherOptions {
  /**
   * M, most rows from one rank to another. Default: as many as there can be, `min(e·C, T·min(K, e))`, which costs
   * memory where loads are even. A run that needs more fails with an `ArgumentError` that names the rank and both
   * counts.
   */
  readonly rowsPerRank?: number;
}

export interface RaggedMetadata {
  /** i32, rows that came from each rank. */
  readonly arrived_P: Tensor;
  /** i32, by expert: which of the rows that came stands where. */
  readonly byExpert_S: Tensor;
}

/** Sums of the entries before each, along the last dimension. */
const before = (counts: Tensor): Tensor => subtract(cumsum(counts), counts);

/**
 * For each row that came, which expert of this rank it is for, e where it is empty: rows of a rank come by expert.
 *
 * @param counts_Pe rows of each rank for each expert. @returns i32 [P, M].
 */
const expertOfRow = (counts_Pe: Tensor, room: number): Tensor => {
  const [numRanks, own] = counts_Pe.shape as [number, number];
  const ends_P1e = reshape(cumsum(counts_Pe), [numRanks, 1, own]);
  const isBehind_PMe = greaterEqual(reshape(arange(room), [1, room, 1]), ends_P1e);
  return sum(cast(isBehind_PMe, "i32"), { dims: -1 });
};

/**
 * Only rows that hold a token travel, by one ragged all-to-all there and one back, with an all-to-all of E counts
 * before. An expert sees exactly its rows.
 *
 * Cost: `4·D` bytes per row that goes to another rank, each way, and `4·E·(P − 1)/P + 8·(P − 1)` bytes of counts sent
 * per rank; a sort of P·M small numbers.
 * @throws ArgumentError for a room that is no whole number from 1.
 */
export const raggedDispatcher = (options: RaggedDispatcherOptions = {}): TokenDispatcher<RaggedMetadata> => {
  if (options.rowsPerRank !== undefined) checkCounts("raggedDispatcher", { rowsPerRank: options.rowsPerRank });
  const roomOf = ({ numExperts, numTokens, numChoices, slots, axis }: DispatchSizes): number => {
    const own = numExperts / axisSize(axis);
    return options.rowsPerRank ?? Math.min(own * slots, numTokens * Math.min(numChoices, own));
  };
  const byRank = (kept_E: Tensor, axis: string): Tensor => reshape(kept_E, [axisSize(axis), -1]);
  return {
    layout: (kept_E, sizes) => {
      const numRanks = axisSize(sizes.axis);
      const room = roomOf(sizes);
      const firstOfRank_P1 = multiply(reshape(arange(numRanks), [numRanks, 1]), room);
      return {
        numRows: numRanks * room,
        firstRow_E: reshape(add(firstOfRank_P1, before(byRank(kept_E, sizes.axis))), [-1]),
      };
    },
    dispatch: (rows_RD, kept_E, { axis }) => {
      const numRanks = axisSize(axis);
      const leaving_P = sum(byRank(kept_E, axis), { dims: -1 });
      const counts_Pe = byRank(allToAll(kept_E, axis), axis);
      const { x, rows: arrived_P } = raggedAllToAll(rows_RD, leaving_P, axis);
      const experts_PM = expertOfRow(counts_Pe, rows_RD.shape[0]! / numRanks);
      // The sort is stable: rows of an expert stay in the order of ranks, empty ones come last.
      const byExpert_S = argsort(reshape(experts_PM, [-1]));
      return {
        rows_SD: permuteRows(x, byExpert_S),
        counts_e: sum(counts_Pe, { dims: 0 }),
        metadata: { arrived_P, byExpert_S },
      };
    },
    combine: (rows_SD, { arrived_P, byExpert_S }, { axis }) =>
      raggedAllToAll(permuteRows(rows_SD, invertPermutation(byExpert_S)), arrived_P, axis).x,
  };
};
