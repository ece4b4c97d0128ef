import { ArgumentError } from "@skein/tensor-core";
import { checkLoads } from "./loads.ts";

/** Experts of two dense layers, D to H and back, and the machines that hold them. */
export interface ShadowingSituation {
  /** D. */
  readonly modelWidth: number;
  /** H. */
  readonly hiddenWidth: number;
  /** Of parameters and activations. */
  readonly bytesPerNumber: number;
  readonly bytesPerSecond: number;
  readonly flopsPerSecond: number;
}

/**
 * What FasterMoE takes where nothing is measured: D = 2048, H = 2 D, f32, 50 Gbit/s, 11.5 Tflop/s.
 *
 * Source: `fmoe/fastermoe/shadow_policy.py` of https://github.com/laekov/fastmoe.
 */
export const fasterMoeSituation: ShadowingSituation = {
  modelWidth: 2048,
  hiddenWidth: 4096,
  bytesPerNumber: 4,
  bytesPerSecond: 50e9 / 8,
  flopsPerSecond: 11.5e12,
};

export interface Shadowing {
  /** Experts that every rank holds, the heaviest first. */
  readonly experts: readonly number[];
  /** Predicted for a layer of a step, forward and backward. */
  readonly seconds: number;
  /** The same with no expert shadowed. */
  readonly unshadowedSeconds: number;
}

/**
 * Choose which experts to send to all ranks for a step, so that their tokens stay where they are. With counts sorted,
 * B₁ ≥ B₂ ≥ …, and the first i experts shadowed, a layer takes
 *
 *     t(i) = 3 c · B(i + 1) + 4 s · B(i + 1) + i · m,   B(E + 1) = 0
 *
 * c = 4 D H / flops seconds for a token forward, and twice that backward; s = bytes · D / bandwidth to send a token, to
 * an expert and back, forward and backward; m = bytes · 2 D H / bandwidth to send an expert. Experts are added,
 * heaviest first, the lowest of equals first, until t falls no more: the first such place, as in FasterMoE, not the
 * least of all.
 *
 * @param counts tokens of all ranks that chose each expert: finite, not negative.
 * @throws ArgumentError for other counts, or a figure of the situation that is not positive.
 *
 * Source: He et al. 2022 (FasterMoE), PPoPP; formulas of its code, as in `fasterMoeSituation`.
 */
export const chooseShadowed = (
  counts: readonly number[],
  situation: ShadowingSituation = fasterMoeSituation,
): Shadowing => {
  checkLoads("chooseShadowed", counts);
  for (const [name, value] of Object.entries(situation) as [string, number][])
    if (!(value > 0 && Number.isFinite(value)))
      throw new ArgumentError(`chooseShadowed: ${name} is ${value}; it is a finite number above 0, measure it`);
  const { modelWidth, hiddenWidth, bytesPerNumber, bytesPerSecond, flopsPerSecond } = situation;
  const computeSeconds = (4 * modelWidth * hiddenWidth) / flopsPerSecond;
  const sendSeconds = (bytesPerNumber * modelWidth) / bytesPerSecond;
  const expertSeconds = (bytesPerNumber * 2 * modelWidth * hiddenWidth) / bytesPerSecond;
  const sorted = [...counts.entries()].sort(([a, x], [b, y]) => y - x || a - b);
  const secondsOf = (numShadowed: number): number =>
    (3 * computeSeconds + 4 * sendSeconds) * (sorted[numShadowed]?.[1] ?? 0) + numShadowed * expertSeconds;
  let numShadowed = 0;
  // It stops after the last expert at latest: one more would save nothing and take m.
  while (secondsOf(numShadowed + 1) < secondsOf(numShadowed)) numShadowed++;
  return {
    experts: sorted.slice(0, numShadowed).map(([expert]) => expert),
    seconds: secondsOf(numShadowed),
    unshadowedSeconds: secondsOf(0),
  };
};
