import { leastLoaded } from "../least-loaded.ts";
import type { Layer } from "../statistics/layer.ts";
import type { InversePlacement } from "./inverse-placement.ts";
import { checkNumRanks, checkWeights } from "./weights.ts";

/** Measured times to invert a factor and to broadcast its inverse, as functions of the factor's number of rows. */
export interface FactorTimes {
  readonly inverseSeconds: (size: number) => number;
  /** Returns the time in seconds to broadcast a factor's inverse to all ranks. */
  readonly broadcastSeconds: (size: number) => number;
}

/**
 * Decides for each factor whether to send its inverse. If inverting takes less time than sending, every rank inverts
 * the factor. Otherwise one rank inverts the factor and sends the inverse. Factors that one rank inverts are assigned
 * largest first, each to the least loaded rank. A and G of a layer are placed independently. With a single rank,
 * nothing is sent.
 *
 * @throws ArgumentError if there are no layers or no ranks, or a time is negative or not finite.
 * @example
 * ```ts
 * const layers = ["a", "b"].map((path) => ({ path, numInputs: 4, numOutputs: 2 }));
 * const times = { inverseSeconds: (size: number) => size ** 3, broadcastSeconds: (size: number) => size ** 2 };
 * console.log(Object.keys(placeBalanced(layers, 2, times).layers)); // ['a', 'b']
 * ```
 * Source: Shi, Zhang and Li 2021 (SPD-KFAC), arXiv 2107.06533. The released code compares sizes with a fixed bound, and
 * places only A; this implementation balances times of both factors.
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
