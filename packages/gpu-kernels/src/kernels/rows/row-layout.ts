import type { DeviceFacts } from "../../kernel.ts";
import { powerOfTwoAbove } from "../power-of-two.ts";
import { vectorWidth } from "./row-program.ts";
import type { RowLanes } from "./row-reduce.ts";

/** Distribution of rows over invocations and workgroups. */
export interface RowLayout extends RowLanes {
  /** Number of elements per vector. */
  readonly width: 1 | 2 | 4;
  /** Number of vectors per row. */
  readonly columns: number;
  /** Number of workgroups per row; 1 if a workgroup processes complete rows. */
  readonly parts: number;
  readonly kind: "resident" | "streamed";
}

const powerOfTwoBelow = (value: number): number => 2 ** Math.floor(Math.log2(Math.max(1, value)));

/** Number of floats per operand that a lane keeps in registers. */
const floatsPerLane = 32;
/** Number of loads in flight per lane, enough to keep memory busy. A larger number would only use more registers. */
const vectorsInFlight = 4;
/**
 * Maximum number of vectors that a lane adds in sequence on a software adapter. Bounds the rounding error of its sums.
 */
const maxChain = 512;
/** Maximum number of entries in a row that one workgroup processes. */
const maxGroupColumns = 131_072;
/** Maximum number of workgroups per row, enough to keep a large device busy with one row. */
const maxParts = 128;

/**
 * Returns the number of adjacent invocations that are guaranteed to be in the same subgroup. Invocations of a
 * one-dimensional workgroup fill subgroups in order on every platform.
 */
export const shuffledLanes = ({ subgroups, minSubgroupSize }: DeviceFacts): number =>
  subgroups ? powerOfTwoBelow(minSubgroupSize) : 1;

/**
 * Chooses the layout of rows of `columns` entries: a few lanes for a short row, a subgroup if the row fits in its
 * registers, a workgroup for a long row. Rows of up to 16,384 entries stay in registers between their statistics and
 * their results. Longer rows are read twice; above 131,072 entries, several workgroups share a row. Software adapters
 * get few lanes for rows of moderate length, and no barriers.
 *
 * The layout does not depend on the number of rows. The order of additions in a row follows from the layout, so the
 * result of a row is bitwise identical for any batch size.
 *
 * @param keep Whether results are written per element, so that keeping a row in registers saves a second read.
 */
export const rowLayout = (
  columns: number,
  facts: DeviceFacts,
  keep: boolean,
  floats: number = floatsPerLane,
): RowLayout => {
  const width = vectorWidth(columns);
  const vectors = columns / width;
  const shuffled = shuffledLanes(facts);
  const largest = powerOfTwoBelow(Math.min(1024, facts.maxWorkgroupSize));
  const perLane = floats / width;
  const shared = { width, columns: vectors, shuffled };
  // On software adapters, a row is read a second time from the CPU cache, and a barrier stops all lanes.
  if (facts.software && vectors <= shuffled * maxChain && (!keep || vectors > shuffled * perLane))
    return { ...shared, lanes: shuffled, workgroupSize: Math.max(shuffled, 64), parts: 1, kind: "streamed" };
  const isResident = keep && vectors <= perLane * Math.min(512, largest);
  if (isResident || (!keep && columns <= maxGroupColumns)) {
    const narrow = Math.min(8, powerOfTwoAbove(vectors));
    let lanes = Math.max(narrow, powerOfTwoAbove(vectors / vectorsInFlight));
    if (lanes > shuffled && vectors <= shuffled * perLane) lanes = Math.max(narrow, shuffled);
    lanes = Math.min(lanes, largest, keep ? 512 : 256);
    while (lanes * perLane < vectors && lanes < Math.min(512, largest)) lanes *= 2;
    return {
      ...shared,
      lanes,
      workgroupSize: Math.min(largest, Math.max(lanes, 64)),
      parts: 1,
      kind: keep ? "resident" : "streamed",
    };
  }
  // Few workgroups with many lanes, so that rows are still in the cache when they are read the second time.
  const lanes = largest;
  const most = Math.ceil(vectors / (lanes * vectorsInFlight));
  const parts = columns <= maxGroupColumns ? 1 : Math.max(1, Math.min(most, lanes, maxParts));
  return { ...shared, lanes, workgroupSize: lanes, parts, kind: "streamed" };
};
