import type { DeviceFacts } from "../../kernel.ts";
import { powerOfTwoAbove } from "../power-of-two.ts";
import { vectorWidth } from "./row-program.ts";
import type { RowLanes } from "./row-reduce.ts";

/** How rows lie on invocations. */
export interface RowLayout extends RowLanes {
  /** Neighbours per vector. */
  readonly width: 1 | 2 | 4;
  /** Vectors of a row. */
  readonly columns: number;
  /** Workgroups of one row; 1 where a workgroup takes whole rows. */
  readonly parts: number;
  readonly kind: "resident" | "streamed";
}

const powerOfTwoBelow = (value: number): number => 2 ** Math.floor(Math.log2(Math.max(1, value)));

/** Floats of one operand that a lane keeps in registers. */
const floatsPerLane = 32;
/** Enough loads in flight that memory never waits for a lane; more only costs registers. */
const vectorsInFlight = 4;
/** Most vectors that a lane adds up one after the other on a processor: bounds the rounding of its sums. */
const longestChain = 512;
/** Longest row that one workgroup reads. */
const longestOfGroup = 131_072;
/** Most workgroups of a row: as many as keep a large device busy with one row. */
const mostParts = 128;

/**
 * Neighbours that surely share a subgroup. Invocations of a one-dimensional workgroup fill subgroups in order on every
 * platform.
 */
export const shuffledLanes = ({ subgroups, minSubgroupSize }: DeviceFacts): number =>
  subgroups ? powerOfTwoBelow(minSubgroupSize) : 1;

/**
 * Lay rows of `columns` entries out: a few lanes for a short row, a subgroup where the row fits in its registers, a
 * workgroup for a long one. Rows stay in registers between their statistics and their results up to 16,384 entries;
 * longer ones are read twice, above 131,072 by several workgroups. Software adapters get few lanes for rows that are
 * not too long, and no barriers.
 *
 * The number of rows has no say: the order of a row's sums follows from its layout, and a row has the same bits alone
 * and among others.
 *
 * @param keep whether something is written per element, so that keeping a row saves reading it again.
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
  // Processors read a row again from their cache, and stop all lanes at a barrier.
  if (facts.software && vectors <= shuffled * longestChain && (!keep || vectors > shuffled * perLane))
    return { ...shared, lanes: shuffled, workgroupSize: Math.max(shuffled, 64), parts: 1, kind: "streamed" };
  const isResident = keep && vectors <= perLane * Math.min(512, largest);
  if (isResident || (!keep && columns <= longestOfGroup)) {
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
  // Few workgroups of many lanes: the second reading of their rows should still find them in the cache.
  const lanes = largest;
  const most = Math.ceil(vectors / (lanes * vectorsInFlight));
  const parts = columns <= longestOfGroup ? 1 : Math.max(1, Math.min(most, lanes, mostParts));
  return { ...shared, lanes, workgroupSize: lanes, parts, kind: "streamed" };
};
