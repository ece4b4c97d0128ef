import { leastLoaded } from "../least-loaded.ts";
import { type InversePlacement, placeEverywhere, placeRoundRobin } from "../placement/inverse-placement.ts";
import { layerSides } from "../statistics/statistic.ts";
import { inverseStages, type StageOptions } from "./form-stages.ts";
import { inverseSecondsOf } from "./stage-times.ts";

/**
 * Decide which factors are inverted by one rank and sent, and which are inverted by all ranks, to minimize the total
 * time of inverting and sending. Candidates: for each k, the k slowest factors are sent, largest first to the least
 * loaded rank; and all layers round-robin. So the result is never slower than inverting everything everywhere, or
 * round-robin. Among equal candidates, the one with the fewest sent factors is chosen.
 *
 * `placeBalanced` compares the two times of each factor separately, which ignores that ranks invert concurrently, and
 * that sent factors are inverted first. So it can be slower than inverting everything everywhere (one factor: inverse
 * 10, broadcast 9).
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
  // A later factor does not change the rank of an earlier one, so one pass covers all values of k.
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
