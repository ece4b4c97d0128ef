import { leastLoaded } from "../least-loaded.ts";
import { type InversePlacement, placeEverywhere, placeInTurn } from "../placement/inverse-placement.ts";
import { layerSides } from "../statistics/statistic.ts";
import { inverseStages, type StageOptions } from "./form-stages.ts";
import { inverseSecondsOf } from "./stage-times.ts";

/**
 * Decide which factors one rank inverts and sends, and which all ranks invert, by what inverting and sending take in
 * all: the k factors that take longest to invert are sent, largest first to the rank with the least to do, for the best
 * k. Layers in turn are tried as well. So it takes no longer than either all everywhere or layers in turn. Of equal
 * ones the fewest are sent.
 *
 * `placeBalanced` sets the two times of each factor beside each other, which leaves out that ranks invert at once, and
 * that the sent ones are inverted first; it may take longer than all everywhere (one factor: inverse 10, broadcast 9).
 *
 * Cost: O(factors · (factors + ranks)).
 * @throws as `formStages`.
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
  // Whoever comes later changes nothing for those before: one pass places each number of them.
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
  for (const placement of [...factors.map((_, i) => sendingMost(i + 1)), placeInTurn(paths, numRanks)]) {
    const seconds = secondsOf(placement);
    if (seconds < least) [best, least] = [placement, seconds];
  }
  return best;
};
