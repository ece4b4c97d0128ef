import { millisecondsText } from "@skein/report";
import type { Measurement } from "./metrics.ts";

/** Expert moves of one layer, and their predicted effect on the load. */
export interface MovedLayer {
  readonly layer: string;
  /** Number of experts moved to another rank. */
  readonly moves: number;
  /** Predicted load of the busiest rank divided by the mean load per rank. */
  readonly busiestBefore: number;
  readonly busiestAfter: number;
  /**
   * Predicted seconds saved until the next placement, minus the seconds that the moves take. Absent: the gain is not
   * compared with the cost.
   */
  readonly gainSeconds?: number | undefined;
}

/** Returns one measurement for `metrics.jsonl` per layer whose experts were moved. */
export const measurementsOf = (step: number, layers: readonly MovedLayer[], seconds: number): readonly Measurement[] =>
  layers.map(({ gainSeconds, ...figures }) => ({
    type: "placement",
    step,
    ...figures,
    ...(gainSeconds !== undefined && { gainSeconds }),
    seconds,
  }));

/** Formats the expert moves of all layers as a line for the user. */
export const formatMoves = (layers: readonly MovedLayer[], seconds: number): string =>
  `${layers
    .map(
      ({ layer, moves, busiestBefore, busiestAfter }) =>
        `${layer} moved ${moves} expert${moves === 1 ? "" : "s"}, busiest rank ${busiestBefore.toFixed(2)} → ${busiestAfter.toFixed(2)} times the mean`,
    )
    .join("; ")} (in ${millisecondsText(seconds)})`;
