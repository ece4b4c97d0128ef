import { ArgumentError } from "@skein/tensor-core";
import { checkLoads } from "../placement/loads.ts";

/**
 * Parameters of the shadowing cost model: sizes of experts with two dense layers (from D to H and back), network
 * bandwidth, and arithmetic speed.
 */
export interface ShadowingCosts {
  /** D, model width. */
  readonly modelWidth: number;
  /** H, hidden width. */
  readonly hiddenWidth: number;
  /** Bytes per parameter and per activation. */
  readonly bytesPerNumber: number;
  readonly bytesPerSecond: number;
  readonly flopsPerSecond: number;
}

/**
 * FasterMoE's default values, for use without measurements: D = 2048, H = 2 D, f32, 50 Gbit/s, 11.5 Tflop/s.
 *
 * Source: `fmoe/fastermoe/shadow_policy.py` of https://github.com/laekov/fastmoe.
 */
export const fasterMoeDefaults: ShadowingCosts = {
  modelWidth: 2048,
  hiddenWidth: 4096,
  bytesPerNumber: 4,
  bytesPerSecond: 50e9 / 8,
  flopsPerSecond: 11.5e12,
};

export interface Shadowing {
  /** Shadowed experts, which are sent to all ranks, heaviest expert first. */
  readonly experts: readonly number[];
  /** Predicted seconds of a layer in one step, forward and backward. */
  readonly seconds: number;
  /** Predicted seconds of the layer without shadowed experts. */
  readonly unshadowedSeconds: number;
}

/**
 * Chooses the experts to send to all ranks for a step (shadowing), so that their tokens are not sent. With sorted token
 * counts B₁ ≥ B₂ ≥ …, and the first i experts shadowed, a layer takes
 *
 *     t(i) = 3 c · B(i + 1) + 4 s · B(i + 1) + i · m,   B(E + 1) = 0
 *
 * c = 4 D H / flops is the forward time of one token; backward takes 2 c. s = bytes · D / bandwidth is the time to send
 * a token once; a token is sent to an expert and back, in forward and backward. m = bytes · 2 D H / bandwidth is the
 * time to send an expert. Experts are added, heaviest first and among equal experts the lowest number first, until t no
 * longer decreases. As in FasterMoE, this is the first local minimum, not the global minimum.
 *
 * @param counts number of tokens of all ranks that chose each expert: finite, not negative.
 * @throws ArgumentError if a count is invalid, or a value of `costs` is not positive.
 *
 * @example
 * ```ts
 * console.log(planShadowing([100_000, 10, 10, 10]).experts); // [0]
 * ```
 * Source: He et al. 2022 (FasterMoE), PPoPP; formulas of its code, as in `fasterMoeDefaults`.
 */
export const planShadowing = (counts: readonly number[], costs: ShadowingCosts = fasterMoeDefaults): Shadowing => {
  checkLoads("planShadowing", counts);
  for (const [name, value] of Object.entries(costs) as [string, number][])
    if (!(value > 0 && Number.isFinite(value)))
      throw new ArgumentError(`planShadowing: ${name} is ${value}; use a measured value, finite and above 0`);
  const { modelWidth, hiddenWidth, bytesPerNumber, bytesPerSecond, flopsPerSecond } = costs;
  const computeSeconds = (4 * modelWidth * hiddenWidth) / flopsPerSecond;
  const sendSeconds = (bytesPerNumber * modelWidth) / bytesPerSecond;
  const expertSeconds = (bytesPerNumber * 2 * modelWidth * hiddenWidth) / bytesPerSecond;
  const sorted = [...counts.entries()].sort(([a, x], [b, y]) => y - x || a - b);
  const secondsOf = (numShadowed: number): number =>
    (3 * computeSeconds + 4 * sendSeconds) * (sorted[numShadowed]?.[1] ?? 0) + numShadowed * expertSeconds;
  let numShadowed = 0;
  // Stops after the last expert at the latest, because a further step would save nothing and cost m.
  while (secondsOf(numShadowed + 1) < secondsOf(numShadowed)) numShadowed++;
  return {
    experts: sorted.slice(0, numShadowed).map(([expert]) => expert),
    seconds: secondsOf(numShadowed),
    unshadowedSeconds: secondsOf(0),
  };
};
