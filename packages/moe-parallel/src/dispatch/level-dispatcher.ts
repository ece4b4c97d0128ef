// Shapes: T tokens of this rank, D token width, K choices per token, S rows that this rank's experts process, N copies
// received by this rank.
import { concat, scope, type Tensor } from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { fromRows, assignRows, type RowTokens, toRows } from "../rows.ts";
import { chunkRanges, cutTokens, type TokenChunk } from "./chunks.ts";
import { returnCopies, type Copies, type Hop, sendCopies } from "./level-exchange.ts";
import { checkLevels, type Level, type LevelOptions, levelsOf } from "./levels.ts";
import { maxRowsPerRank } from "./row-bounds.ts";
import { rowOf, targetsOf } from "./targets.ts";
import type { DispatchSizes, ExpertRows, TokenDispatcher } from "./token-dispatcher.ts";

/**
 * Hops of one chunk's token copies through the levels of the mesh, and the expert rows made from the received copies.
 */
export interface LevelRoute {
  /** Hops in the order of dispatch. */
  readonly hops: readonly Hop[];
  /** Index of the received copy from which each row of this rank's experts is made, and weight of the row. */
  readonly rows: RowTokens;
}

/** State of the level dispatchers that `combine` needs: the route of each chunk. */
export type LevelMetadata = readonly LevelRoute[];

/** Operations in which level dispatchers differ: packing, order of levels, and maximum number of copies. */
export interface LevelStrategy {
  readonly name: string;
  /** Returns the copies of a chunk's tokens before the first hop. */
  readonly pack: (chunk: TokenChunk, targets_TK: Tensor) => Copies;
  /** Splits received rows into tokens and weights, [N, K]. Absent weights: every expert output has weight 1. */
  readonly unpack: (x_ND: Tensor, width: number) => { readonly x_ND: Tensor; readonly weights_NK?: Tensor };
  /** Returns the levels in the order of dispatch. */
  readonly orderLevels: (levels: readonly Level[]) => readonly Level[];
  /**
   * Returns the maximum number of targets (expert rows) of one copy: K if a copy can be used by several experts,
   * otherwise 1.
   */
  readonly targetsPerCopy: (sizes: DispatchSizes) => number;
  /** Returns the maximum number of copies that one rank sends to a set of ranks with `numExperts` experts in total. */
  readonly maxCopies: (numExperts: number, sizes: DispatchSizes) => number;
}

interface BufferSizes {
  /** Maximum number of copies from one rank to another rank, per level. */
  readonly rowsPerHop: readonly number[];
  /** S, number of rows for this rank's experts. */
  readonly numRows: number;
}

const bufferSizes = (
  levels: readonly Level[],
  sizes: DispatchSizes,
  { maxCopies, targetsPerCopy }: LevelStrategy,
): BufferSizes => {
  let [numSources, numExperts, numCopies] = [1, sizes.numExperts, Infinity];
  const rowsPerHop = levels.map(({ numGroups, copiesPerRank }) => {
    numExperts /= numGroups;
    const room = copiesPerRank ?? Math.min(numCopies, numSources * maxCopies(numExperts, sizes));
    numSources *= numGroups;
    numCopies = numGroups * room;
    return room;
  });
  const rowsPerCopy = Math.min(targetsPerCopy(sizes), numExperts);
  return { rowsPerHop, numRows: Math.min(axisSize(sizes.axis) * maxRowsPerRank(sizes), numCopies * rowsPerCopy) };
};

/**
 * Returns a dispatcher that sends tokens over one level of the mesh after another: from rank to rank along one axis,
 * then along the next axis. All chunks pass a level before a chunk passes the next level, so that different chunks can
 * be sent over different levels at the same time.
 */
export const levelDispatcher = (strategy: LevelStrategy, options: LevelOptions): TokenDispatcher<LevelMetadata> => {
  checkLevels(strategy.name, options);
  const levelsFor = ({ axis }: DispatchSizes): readonly Level[] =>
    strategy.orderLevels(levelsOf(strategy.name, options, axis));

  return {
    dispatch: (x_TD, order, sizes) => {
      const levels = levelsFor(sizes);
      const width = x_TD.shape[1]!;
      const packed = scope("dispatch", () =>
        cutTokens(x_TD, order, sizes).map((chunk) => {
          const { rowsPerHop, numRows } = bufferSizes(levels, chunk.sizes, strategy);
          const { targets_TK, counts_e } = targetsOf(chunk.order, chunk.sizes, {
            numRows,
            priority: levels[0]!.priority,
          });
          return {
            copies: strategy.pack(chunk, targets_TK),
            counts_e,
            rowsPerHop,
            numRows,
            hops: [] as readonly Hop[],
          };
        }),
      );
      const arrived = levels.reduce(
        (chunks, level, i) =>
          chunks.map(({ copies, hops, ...chunk }) => {
            const sent = scope("dispatch", () =>
              sendCopies(copies, level, { room: chunk.rowsPerHop[i]!, numRows: chunk.numRows }),
            );
            return { ...chunk, copies: sent.copies, hops: [...hops, sent.hop] };
          }),
        packed,
      );
      const expertInputs = arrived.map(({ copies, hops, counts_e, numRows }): { rows: ExpertRows; route: LevelRoute } =>
        scope("order", () => {
          const { x_ND, weights_NK } = strategy.unpack(copies.x_XD, width);
          const rows = assignRows(rowOf(copies.targets_NK, numRows), weights_NK, numRows);
          return { rows: { rows_SD: toRows(x_ND, rows), counts_e }, route: { hops, rows } };
        }),
      );
      return { chunks: expertInputs.map(({ rows }) => rows), metadata: expertInputs.map(({ route }) => route) };
    },
    combine: (outputs, metadata, sizes) => {
      const levels = levelsFor(sizes);
      const tokens = chunkRanges(sizes.numTokens, sizes.numChunks).map(({ begin, end }) => end - begin);
      /** Returns the number of copies of a chunk on this rank after `numHops` hops. */
      const numCopies = (chunk: number, numHops: number): number =>
        numHops === 0 ? tokens[chunk]! : metadata[chunk]!.hops[numHops - 1]!.tokens_R.shape[0]!;
      const weighted = outputs.map((y_SD, chunk) =>
        scope("inverse-order", () => fromRows(y_SD, metadata[chunk]!.rows, numCopies(chunk, levels.length))),
      );
      const returned = levels.reduceRight<readonly Tensor[]>(
        (copies, level, i) =>
          copies.map((y_ND, chunk) =>
            scope("combine", () => returnCopies(y_ND, metadata[chunk]!.hops[i]!, level, numCopies(chunk, i))),
          ),
        weighted,
      );
      return scope("inverse-order", () => concat(returned));
    },
  };
};
