import type { Measurement } from "./metrics.ts";

/** How the experts of a layer were moved. */
export interface MovedLayer {
  readonly layer: string;
  /** Experts that changed their rank. */
  readonly moves: number;
  /** Load of the busiest rank over the mean of ranks, as predicted. */
  readonly busiestBefore: number;
  readonly busiestAfter: number;
  /** Of the steps until experts are placed anew, less what the moves take, as predicted; where gains are weighed. */
  readonly gainSeconds?: number | undefined;
}

/** What metrics keep of moves. */
export const measurementsOf = (step: number, layers: readonly MovedLayer[], seconds: number): readonly Measurement[] =>
  layers.map(({ gainSeconds, ...figures }) => ({
    type: "placement",
    step,
    ...figures,
    ...(gainSeconds !== undefined && { gainSeconds }),
    seconds,
  }));

/** A word on moves for people. */
export const formatMoves = (layers: readonly MovedLayer[], seconds: number): string =>
  `${layers
    .map(
      ({ layer, moves, busiestBefore, busiestAfter }) =>
        `${layer} moved ${moves} expert${moves === 1 ? "" : "s"}, busiest rank ${busiestBefore.toFixed(2)} → ${busiestAfter.toFixed(2)} times the mean`,
    )
    .join("; ")} (in ${(1000 * seconds).toPrecision(3)} ms)`;
