import { leastLoaded } from "../least-loaded.ts";
import { type InversePlacement, placeEverywhere, placeRoundRobin } from "../placement/inverse-placement.ts";
import { layerSides } from "../statistics/statistic.ts";
import { inverseStages, type StageOptions } from "./form-stages.ts";
import { inverseSecondsOf } from "./stage-times.ts";

/**
 * Decides which factors one rank inverts and sends, and which factors all ranks invert, to minimize the total time of
 * inverting and sending. For each k there is a candidate in which the k slowest factors are sent, largest first to the
 * least loaded rank. Another candidate places all layers round-robin. So the result is never slower than inverting all
 * factors on all ranks, or round-robin. Among equally fast candidates, the candidate that sends the fewest factors is
 * chosen.
 *
 * `placeBalanced` compares inverting and sending separately for each factor. `placeBalanced` ignores that ranks invert
 * concurrently, and that factors are inverted before they are sent. So `placeBalanced` can be slower than inverting all
 * factors on all ranks (one factor: inverse 10, broadcast 9).
 *
 * Cost: O(factors · (factors + ranks)).
 * @throws ArgumentError under the conditions of `formStages`.
 */
export const placeForStage = (options: StageOptions): InversePlacement => {
  const { layers, numRanks, times } = options;
  const paths = layers.map(({ path }) => path);
  const everywhere = placeEverywhere(paths, numRanks);
  if (numRanks === 1) return everywhere;
  const factors = layers
    .flatMap((layer) =>
      layerSides.map((side) => ({ path: layer.path, side, seconds: inverseSecondsOf(times, layer, side) })),
    )
    .toSorted((a, b) => b.seconds - a.seconds);
  // Later factors do not change the rank of earlier factors, so one pass covers all values of k.
  const rows = leastLoaded(
    factors.map(({ seconds }) => seconds),
    numRanks,
  );
  const sendingMost = (count: number): InversePlacement => {
    const places = Object.fromEntries(paths.map((path) => [path, { ...everywhere.layers[path]! }]));
    for (const [i, { path, side }] of factors.slice(0, count).entries())
      places[path] = { ...places[path]!, [side]: rows[i]! };
    return { workers: numRanks, layers: places };
  };
  const secondsOf = (placement: InversePlacement): number => {
    const { inverseSeconds, inverseCommunicationSeconds } = inverseStages(placement, options);
    return inverseSeconds + inverseCommunicationSeconds;
  };
  let [best, least] = [everywhere, secondsOf(everywhere)];
  for (const placement of [...factors.map((_, i) => sendingMost(i + 1)), placeRoundRobin(paths, numRanks)]) {
    const seconds = secondsOf(placement);
    if (seconds < least) [best, least] = [placement, seconds];
  }
  return best;
};
