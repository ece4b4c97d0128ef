import { leastLoaded } from "../least-loaded.ts";
import type { Layer } from "../statistics/layer.ts";
import type { InversePlacement } from "./inverse-placement.ts";
import { checkNumRanks, checkWeights } from "./weights.ts";

/** Measured times by the rows n of a factor. */
export interface FactorTimes {
  readonly inverseSeconds: (size: number) => number;
  /** Of the inverse, to all ranks. */
  readonly broadcastSeconds: (size: number) => number;
}

/**
 * Decide for each factor whether its inverse is worth sending: where it takes less to invert than to send, every rank
 * inverts it; the others go to owners, largest first to the rank with the least to invert. A and G of a layer are
 * placed apart. One rank has nothing to send.
 *
 * @throws ArgumentError for no layers or ranks, and for times that are negative or not finite.
 * Source: Shi, Zhang and Li 2021 (SPD-KFAC), arXiv 2107.06533. Their released code compares sizes with a fixed bound,
 * and places A only; this balances times, of both factors.
 */
export const placeBalanced = (
  layers: readonly Pick<Layer, "path" | "numInputs" | "numOutputs">[],
  numRanks: number,
  { inverseSeconds, broadcastSeconds }: FactorTimes,
): InversePlacement => {
  checkNumRanks("placeBalanced", numRanks);
  const sizes = layers.flatMap(({ numInputs, numOutputs }) => [numInputs, numOutputs]);
  const [inverses, broadcasts] = [sizes.map(inverseSeconds), sizes.map(broadcastSeconds)];
  checkWeights("placeBalanced: inverseSeconds", inverses);
  checkWeights("placeBalanced: broadcastSeconds", broadcasts);
  const sent = numRanks === 1 ? [] : sizes.flatMap((_, i) => (inverses[i]! < broadcasts[i]! ? [] : [i]));
  const rows = leastLoaded(
    sent.map((i) => inverses[i]!),
    numRanks,
  );
  const rowOf = (i: number): number | "everywhere" => rows[sent.indexOf(i)] ?? "everywhere";
  return {
    workers: numRanks,
    layers: Object.fromEntries(
      layers.map(({ path }, i) => [path, { column: 0, input: rowOf(2 * i), gradient: rowOf(2 * i + 1) }]),
    ),
  };
};
