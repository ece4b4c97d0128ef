// Shapes: D token width, P ranks, E experts, e = E / P experts per rank, C slots per expert for the tokens of one rank,
// M maximum number of rows from one rank to another rank, R = S = P·M rows.
import {
  add,
  allToAll,
  arange,
  argsort,
  cast,
  concat,
  cumsum,
  greaterEqual,
  invertPermutation,
  multiply,
  permuteRows,
  raggedAllToAll,
  reshape,
  scope,
  sum,
  type Tensor,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { checkCounts, checkPriority, tokenPriority } from "../options.ts";
import { fromRows, assignRows, rowsOf, type RowTokens, toRows } from "../rows.ts";
import { before, chunkRanges, cutTokens, type TokenChunk } from "./chunks.ts";
import { maxRowsPerRank } from "./row-bounds.ts";
import type { TokenDispatcher } from "./token-dispatcher.ts";

export interface RaggedDispatcherOptions {
  /**
   * M, maximum number of rows from one rank to another rank. Default: the largest possible number,
   * `min(e·C, T·min(K, e))`, which wastes memory if loads are even. A run that exceeds the maximum fails with an
   * `ArgumentError` that contains the rank and both counts.
   */
  readonly rowsPerRank?: number;
  /**
   * Priority of the collectives, 0 to 3. Collectives of equal priority wait for each other; a higher priority is sent
   * first. Default: 3.
   */
  readonly priority?: number;
}

/** State of one chunk that `combine` needs. */
interface RaggedChunk extends RowTokens {
  /** Number of rows received from each rank, i32. */
  readonly arrived_P: Tensor;
  /** Permutation that sorts received rows by expert, i32. */
  readonly byExpert_S: Tensor;
}

/** State of the ragged dispatcher that `combine` needs: row counts and permutation of each chunk. */
export type RaggedMetadata = readonly RaggedChunk[];

/**
 * Returns, for each received row, the index of its expert among this rank's e experts; e for an empty row. The rows
 * from each source rank are sorted by expert.
 *
 * @param counts_Pe number of rows from each rank for each expert.
 * @param room M, maximum number of rows from one rank.
 * @returns i32 [P, M].
 */
const expertOfRow = (counts_Pe: Tensor, room: number): Tensor => {
  const [numRanks, own] = counts_Pe.shape as [number, number];
  const ends_P1e = reshape(cumsum(counts_Pe), [numRanks, 1, own]);
  const isBehind_PMe = greaterEqual(reshape(arange(room), [1, room, 1]), ends_P1e);
  return sum(cast(isBehind_PMe, "i32"), { dims: -1 });
};

/**
 * Dispatcher that sends only rows with a token. After an all-to-all of E counts, one ragged all-to-all dispatches the
 * rows; another returns the results for combine. An expert processes only rows with its tokens. Chunks are ranges of
 * tokens.
 *
 * Cost: `4·D` bytes per row to another rank, in each direction; `4·E·(P − 1)/P + 8·(P − 1)` bytes of counts sent per
 * rank and chunk; a sort of P·M small integers.
 * @throws ArgumentError if `rowsPerRank` is not a positive integer, or the priority is invalid.
 * @example
 * ```ts
 * const moe = moeLayer({
 *   gate: switchGate({ width: 4, numExperts: 2 }),
 *   experts: geluExperts({ width: 4, hidden: 8 }),
 *   dispatcher: raggedDispatcher(),
 * });
 * const { params } = await evaluate(moe.init, referenceBackend())(randomKey(1));
 * console.log(params.experts.up_DF.shape); // [2, 4, 8]
 * ```
 */
export const raggedDispatcher = (options: RaggedDispatcherOptions = {}): TokenDispatcher<RaggedMetadata> => {
  if (options.rowsPerRank !== undefined) checkCounts("raggedDispatcher", { rowsPerRank: options.rowsPerRank });
  const { priority = tokenPriority } = options;
  checkPriority("raggedDispatcher", priority);
  const dispatchChunk = ({ x_TD, order, sizes }: TokenChunk) => {
    const { axis } = sizes;
    const numRanks = axisSize(axis);
    const room = options.rowsPerRank ?? maxRowsPerRank(sizes);
    const byRank = (counts_E: Tensor): Tensor => reshape(counts_E, [numRanks, -1]);
    const layout = scope("order", () => {
      const firstOfRank_P1 = multiply(reshape(arange(numRanks), [numRanks, 1]), room);
      const firstRow_E = reshape(add(firstOfRank_P1, before(byRank(order.kept_E))), [-1]);
      return assignRows(rowsOf(order, firstRow_E), order.weights_TK, numRanks * room);
    });
    const rows_RD = scope("order", () => toRows(x_TD, layout));
    return scope("dispatch", () => {
      const leaving_P = sum(byRank(order.kept_E), { dims: -1 });
      const counts_Pe = byRank(allToAll(order.kept_E, axis, { priority }));
      const { x, rows: arrived_P } = raggedAllToAll(rows_RD, leaving_P, axis, { priority });
      // The sort is stable: the rows of an expert stay in rank order, and empty rows come last.
      const byExpert_S = argsort(reshape(expertOfRow(counts_Pe, room), [-1]));
      return {
        rows: { rows_SD: permuteRows(x, byExpert_S), counts_e: sum(counts_Pe, { dims: 0 }) },
        metadata: { ...layout, arrived_P, byExpert_S },
      };
    });
  };
  return {
    dispatch: (x_TD, order, sizes) => {
      const chunks = cutTokens(x_TD, order, sizes).map(dispatchChunk);
      return { chunks: chunks.map(({ rows }) => rows), metadata: chunks.map(({ metadata }) => metadata) };
    },
    combine: (outputs, metadata, { axis, numTokens, numChunks }) => {
      const returned = scope("combine", () =>
        metadata.map(
          ({ arrived_P, byExpert_S }, i) =>
            raggedAllToAll(permuteRows(outputs[i]!, invertPermutation(byExpert_S)), arrived_P, axis, { priority }).x,
        ),
      );
      const ranges = chunkRanges(numTokens, numChunks);
      return scope("inverse-order", () =>
        concat(ranges.map(({ begin, end }, i) => fromRows(returned[i]!, metadata[i]!, end - begin))),
      );
    },
  };
};
