// Shapes: T tokens of this rank, D width of a token, K choices of a token, S rows that this rank's experts see, N
// copies that came to this rank.
import { concat, scope, type Tensor } from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { fromRows, layOut, type RowTokens, toRows } from "../rows.ts";
import { chunkRanges, cutTokens, type TokenChunk } from "./chunks.ts";
import { bringBack, type Copies, type Leg, sendOn } from "./level-exchange.ts";
import { checkLevels, type Level, type LevelOptions, levelsOf } from "./levels.ts";
import { mostRowsPerRank } from "./room.ts";
import { rowOf, targetsOf } from "./targets.ts";
import type { DispatchSizes, ExpertRows, TokenDispatcher } from "./token-dispatcher.ts";

/** Of one chunk. */
export interface Journey {
  /** In the order in which copies took them there. */
  readonly legs: readonly Leg[];
  /** Which copy each row of this rank's experts is of, and what it counts. */
  readonly rows: RowTokens;
}

/** What the dispatcher by levels keeps to bring rows back: of each chunk, its journey. */
export type LevelMetadata = readonly Journey[];

/** What leaves, and how many rooms it may need: what dispatchers over levels differ in. */
export interface LevelTravel {
  readonly name: string;
  /** Copies of a chunk's tokens, before any has left. */
  readonly begin: (chunk: TokenChunk, targets_TK: Tensor) => Copies;
  /** Takes copies and the weights that came with them, [N, K], apart; without weights, all that is done counts 1. */
  readonly arrive: (x_ND: Tensor, width: number) => { readonly x_ND: Tensor; readonly weights_NK?: Tensor };
  /** Levels in the order in which copies take them. */
  readonly inOrder: (levels: readonly Level[]) => readonly Level[];
  /** K, where a copy is for several experts. */
  readonly targetsPerCopy: (sizes: DispatchSizes) => number;
  /** Most copies of one rank's tokens that go to ranks which have so many experts together. */
  readonly mostCopies: (numExperts: number, sizes: DispatchSizes) => number;
}

interface Rooms {
  /** By level: most copies from one rank to another. */
  readonly rooms: readonly number[];
  /** S */
  readonly numRows: number;
}

const roomsOf = (
  levels: readonly Level[],
  sizes: DispatchSizes,
  { mostCopies, targetsPerCopy }: LevelTravel,
): Rooms => {
  let [numSources, numExperts, numCopies] = [1, sizes.numExperts, Infinity];
  const rooms = levels.map(({ numGroups, copiesPerRank }) => {
    numExperts /= numGroups;
    const room = copiesPerRank ?? Math.min(numCopies, numSources * mostCopies(numExperts, sizes));
    numSources *= numGroups;
    numCopies = numGroups * room;
    return room;
  });
  const rowsPerCopy = Math.min(targetsPerCopy(sizes), numExperts);
  return { rooms, numRows: Math.min(axisSize(sizes.axis) * mostRowsPerRank(sizes), numCopies * rowsPerCopy) };
};

/**
 * A dispatcher whose tokens travel over one level of the mesh after the other: from rank to rank along one axis, then
 * from there along the next. All chunks take a level before any takes the next, so that a chunk may be on one level
 * while another is on the one before.
 */
export const levelDispatcher = (travel: LevelTravel, options: LevelOptions): TokenDispatcher<LevelMetadata> => {
  checkLevels(travel.name, options);
  const levelsFor = ({ axis }: DispatchSizes): readonly Level[] => travel.inOrder(levelsOf(travel.name, options, axis));

  return {
    dispatch: (x_TD, order, sizes) => {
      const levels = levelsFor(sizes);
      const width = x_TD.shape[1]!;
      const begun = scope("dispatch", () =>
        cutTokens(x_TD, order, sizes).map((chunk) => {
          const { rooms, numRows } = roomsOf(levels, chunk.sizes, travel);
          const { targets_TK, counts_e } = targetsOf(chunk.order, chunk.sizes, {
            numRows,
            priority: levels[0]!.priority,
          });
          return { copies: travel.begin(chunk, targets_TK), counts_e, rooms, numRows, legs: [] as readonly Leg[] };
        }),
      );
      const arrived = levels.reduce(
        (chunks, level, i) =>
          chunks.map(({ copies, legs, ...chunk }) => {
            const sent = scope("dispatch", () =>
              sendOn(copies, level, { room: chunk.rooms[i]!, numRows: chunk.numRows }),
            );
            return { ...chunk, copies: sent.copies, legs: [...legs, sent.leg] };
          }),
        begun,
      );
      const seen = arrived.map(({ copies, legs, counts_e, numRows }): { rows: ExpertRows; journey: Journey } =>
        scope("order", () => {
          const { x_ND, weights_NK } = travel.arrive(copies.x_XD, width);
          const rows = layOut(rowOf(copies.targets_NK, numRows), weights_NK, numRows);
          return { rows: { rows_SD: toRows(x_ND, rows), counts_e }, journey: { legs, rows } };
        }),
      );
      return { chunks: seen.map(({ rows }) => rows), metadata: seen.map(({ journey }) => journey) };
    },
    combine: (done, metadata, sizes) => {
      const levels = levelsFor(sizes);
      const tokens = chunkRanges(sizes.numTokens, sizes.numChunks).map(({ begin, end }) => end - begin);
      /** Copies of a chunk on this rank, after so many legs. */
      const numCopies = (chunk: number, numLegs: number): number =>
        numLegs === 0 ? tokens[chunk]! : metadata[chunk]!.legs[numLegs - 1]!.tokens_R.shape[0]!;
      const weighted = done.map((y_SD, chunk) =>
        scope("inverse-order", () => fromRows(y_SD, metadata[chunk]!.rows, numCopies(chunk, levels.length))),
      );
      const home = levels.reduceRight<readonly Tensor[]>(
        (copies, level, i) =>
          copies.map((y_ND, chunk) =>
            scope("combine", () => bringBack(y_ND, metadata[chunk]!.legs[i]!, level, numCopies(chunk, i))),
          ),
        weighted,
      );
      return scope("inverse-order", () => concat(home));
    },
  };
};
