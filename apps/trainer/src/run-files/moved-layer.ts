import type { Measurement } from "./metrics.ts";

/** Moves of the experts of a layer. */
export interface MovedLayer {
  readonly layer: string;
  /** Number of experts that changed their rank. */
  readonly moves: number;
  /** Predicted load of the busiest rank over the mean of ranks. */
  readonly busiestBefore: number;
  readonly busiestAfter: number;
  /**
   * Predicted seconds saved until the next placement, minus the cost of the moves. Absent: gains are not compared with
   * costs.
   */
  readonly gainSeconds?: number | undefined;
}

/** Convert moves to measurements for metrics. */
export const measurementsOf = (step: number, layers: readonly MovedLayer[], seconds: number): readonly Measurement[] =>
  layers.map(({ gainSeconds, ...figures }) => ({
    type: "placement",
    step,
    ...figures,
    ...(gainSeconds !== undefined && { gainSeconds }),
    seconds,
  }));

/** Describe moves for the user. */
export const formatMoves = (layers: readonly MovedLayer[], seconds: number): string =>
  `${layers
    .map(
      ({ layer, moves, busiestBefore, busiestAfter }) =>
        `${layer} moved ${moves} expert${moves === 1 ? "" : "s"}, busiest rank ${busiestBefore.toFixed(2)} → ${busiestAfter.toFixed(2)} times the mean`,
    )
    .join("; ")} (in ${(1000 * seconds).toPrecision(3)} ms)`;
