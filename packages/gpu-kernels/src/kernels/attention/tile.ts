import type { DeviceFacts } from "../../kernel.ts";
import { vectorsOf } from "./vectors.ts";

/**
 * How one workgroup cuts attention: `4·rowLanes` rows meet `4·columnLanes` columns at a time, each invocation owns 4 ×
 * 4 scores and, of its 4 rows, every `columnLanes`-th vector of the results.
 *
 * - Invocation (r, c) owns rows r + i·rowLanes and columns 4c + n: a vector of four weights is then written by one
 *   invocation.
 * - Columns lie in memory as n·columnLanes + c, rows an odd number of vectors apart: neighbours never meet in a bank.
 */
export interface AttentionTile {
  readonly rowLanes: number;
  readonly columnLanes: number;
  /** Vectors of four in a row of an operand. */
  readonly vectors: number;
  /** Vectors of a row that are in workgroup memory at a time. */
  readonly chunk: number;
  /** The row operands are loaded once, not once per tile of columns. */
  readonly resident: boolean;
  /** Loops stay loops: what processors that pretend to be GPUs compile takes seconds where it is written out. */
  readonly rolled: boolean;
}

/** What a kernel keeps in workgroup memory. */
export interface TileDemand {
  /** Operands of rows that are kept when whole rows fit: q; q and g; k and v. */
  readonly rowOperands: number;
  /** Results per row and column of it: 1, for keys 2 (dk and dv). */
  readonly results: number;
  /** Rows exchange a maximum per invocation. */
  readonly exchanges: boolean;
}

export const tileRows = ({ rowLanes }: AttentionTile): number => 4 * rowLanes;
export const tileColumns = ({ columnLanes }: AttentionTile): number => 4 * columnLanes;
export const strideOf = ({ chunk }: AttentionTile): number => chunk | 1;
export const weightStride = ({ columnLanes }: AttentionTile): number => columnLanes | 1;
export const resultVectors = ({ vectors, columnLanes }: AttentionTile): number => Math.ceil(vectors / columnLanes);
/** Columns of the second product's operand, whole rows each, that fit where the first product's chunk was. */
export const columnsAtOnce = (tile: AttentionTile): number => {
  const room = Math.floor((tileColumns(tile) * strideOf(tile)) / tile.vectors / 4);
  return Math.min(tileColumns(tile), 4 * Math.max(1, room));
};
/** Vectors of the streamed operand. */
export const farVectors = (tile: AttentionTile): number =>
  Math.max(tileColumns(tile) * strideOf(tile), tile.resident ? 0 : columnsAtOnce(tile) * tile.vectors);

/** Bytes of workgroup memory. */
export const tileBytes = (tile: AttentionTile, { rowOperands, exchanges }: TileDemand): number =>
  16 * tileRows(tile) * (strideOf(tile) * (tile.resident ? rowOperands : 1) + weightStride(tile)) +
  16 * farVectors(tile) +
  (exchanges ? 4 * tileRows(tile) * tile.columnLanes : 0);

/** Workgroups below which small ones are better: more of them than the largest GPUs have cores. */
const manyGroups = 256;

/**
 * The tile for rows of `width` entries.
 *
 * @param lines batch entries × heads.  @param positions rows of each.
 */
export const attentionTile = (
  width: number,
  lines: number,
  positions: number,
  demand: TileDemand,
  facts: Pick<DeviceFacts, "software" | "maxWorkgroupSize" | "maxWorkgroupBytes">,
): AttentionTile => {
  const vectors = vectorsOf(width);
  // At most 16 vectors of results in the registers of an invocation, up to width 256 with one result and 128 with two.
  const columnLanes = vectors <= 4 ? 4 : vectors * demand.results <= 32 ? 8 : 16;
  const parallel = lines * Math.ceil(positions / 64) >= manyGroups;
  const tile = (rowLanes: number, chunk: number): AttentionTile => ({
    rowLanes,
    columnLanes,
    vectors,
    chunk: Math.min(chunk, vectors),
    resident: chunk >= vectors,
    rolled: facts.software,
  });
  const candidates = [
    ...(parallel ? [tile(16, vectors)] : []),
    tile(8, vectors),
    ...(parallel ? [tile(16, 16)] : []),
    tile(8, 16),
    tile(8, 8),
    tile(4, vectors),
    tile(4, 8),
    tile(4, 4),
    tile(2, 4),
    tile(1, 1),
  ];
  return candidates.find(
    (candidate) =>
      candidate.rowLanes * candidate.columnLanes <= facts.maxWorkgroupSize &&
      tileBytes(candidate, demand) <= facts.maxWorkgroupBytes,
  )!;
};
