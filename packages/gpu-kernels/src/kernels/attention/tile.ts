import type { DeviceFacts } from "../../kernel.ts";
import { vectorsOf } from "./vectors.ts";

/**
 * Tiling of attention for one workgroup: `4·rowLanes` rows × `4·columnLanes` columns at a time. Each invocation owns 4
 * × 4 scores and, for its 4 rows, every `columnLanes`-th vector of the results.
 *
 * - Invocation (r, c) owns rows r + i·rowLanes and columns 4c + n, so one invocation writes a complete vector of four
 *   weights.
 * - Columns are stored at n·columnLanes + c, and rows are an odd number of vectors apart, so adjacent invocations never
 *   access the same bank.
 */
export interface AttentionTile {
  readonly rowLanes: number;
  readonly columnLanes: number;
  /** Number of 4-element vectors per operand row. */
  readonly vectors: number;
  /** Number of vectors per row that are in workgroup memory at a time. */
  readonly chunk: number;
  /** Whether the row operands are loaded once per workgroup, instead of once per tile of columns. */
  readonly resident: boolean;
  /** Whether loops are not unrolled. Software adapters take seconds to compile unrolled loops. */
  readonly rolled: boolean;
}

/** Workgroup memory and registers that a kernel needs. */
export interface TileDemand {
  /**
   * Number of row operands that stay in workgroup memory if complete rows fit: 1 for the forward pass (q), 2 for the
   * gradient passes (q and g, or k and v).
   */
  readonly rowOperands: number;
  /** Number of results per row: 1 for queries (the output or dq), 2 for keys (dk and dv). */
  readonly results: number;
  /** Whether invocations exchange a maximum per row. */
  readonly exchanges: boolean;
}

export const tileRows = ({ rowLanes }: AttentionTile): number => 4 * rowLanes;
export const tileColumns = ({ columnLanes }: AttentionTile): number => 4 * columnLanes;
export const strideOf = ({ chunk }: AttentionTile): number => chunk | 1;
export const weightStride = ({ columnLanes }: AttentionTile): number => columnLanes | 1;
export const resultVectors = ({ vectors, columnLanes }: AttentionTile): number => Math.ceil(vectors / columnLanes);
/**
 * Returns the number of columns that are loaded at a time for the second product, weights · columns. The complete rows
 * of these columns fit in the memory that holds a chunk of all columns in the first product.
 */
export const columnsAtOnce = (tile: AttentionTile): number => {
  const room = Math.floor((tileColumns(tile) * strideOf(tile)) / tile.vectors / 4);
  return Math.min(tileColumns(tile), 4 * Math.max(1, room));
};
/** Returns the number of vectors of the column operand in workgroup memory. */
export const farVectors = (tile: AttentionTile): number =>
  Math.max(tileColumns(tile) * strideOf(tile), tile.resident ? 0 : columnsAtOnce(tile) * tile.vectors);

/** Returns the bytes of workgroup memory that a kernel uses. */
export const tileBytes = (tile: AttentionTile, { rowOperands, exchanges }: TileDemand): number =>
  16 * tileRows(tile) * (strideOf(tile) * (tile.resident ? rowOperands : 1) + weightStride(tile)) +
  16 * farVectors(tile) +
  (exchanges ? 4 * tileRows(tile) * tile.columnLanes : 0);

/** Number of workgroups below which smaller tiles are faster. Exceeds the number of cores of the largest GPUs. */
const manyGroups = 256;

/**
 * Chooses the tile for rows of `width` entries.
 *
 * @param lines Number of lines, batch entries × heads.
 * @param positions Number of rows per line.
 */
export const attentionTile = (
  width: number,
  lines: number,
  positions: number,
  demand: TileDemand,
  facts: Pick<DeviceFacts, "software" | "maxWorkgroupSize" | "maxWorkgroupBytes">,
): AttentionTile => {
  const vectors = vectorsOf(width);
  // At most 16 vectors of results in the registers of an invocation, for widths up to 256 with one result and 128 with
  // two.
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
