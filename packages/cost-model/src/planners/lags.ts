import { ArgumentError } from "@skein/tensor-core";
import { checkProfile, type GradientProfile } from "../gradient-profile.ts";
import { type CollectiveModel, collectiveSeconds } from "../collective-model.ts";

export interface LagsOptions {
  /**
   * Number of ranks that exchange a gradient, or a function that returns this number by path. If the number is 1, the
   * gradient is not sent.
   */
  readonly worldSize: number | ((path: string) => number);
  /** Time model of the dense all-reduce, as a function of the gradient's bytes. */
  readonly allReduce: CollectiveModel;
  /**
   * Time model of all-gathering sparse payloads, as a function of the result's bytes: P times the bytes that a rank
   * sends.
   */
  readonly allGather: CollectiveModel;
  /**
   * Function that returns the seconds to select the entries to send from a gradient of `numElements` elements. Default:
   * 0.
   */
  readonly selectionSeconds?: (numElements: number) => number;
  /** ρ_min, minimum density. Default: 0.001, the published value. */
  readonly minDensity?: number;
  /** Bytes of one sent entry: value and index. Default: 8. */
  readonly entryBytes?: number;
}

/** A tensor with its density, the fraction of entries to send. */
export interface TensorDensity {
  readonly path: string;
  /** Fraction of entries to send. 1: the dense gradient is sent by all-reduce. */
  readonly density: number;
}

/**
 * Chooses a density ρ for each gradient such that the backward computation of the next gradient hides its exchange
 * (LAGS-SGD): the largest
 *
 *     ρ ≤ 1  with  t_select + T_all-gather(P · 8 · ρn) ≤ t_b(next),   otherwise ρ_min
 *
 * The density is 1 (dense) if the dense exchange is hidden, or takes no longer than the exchange with ρ_min. So small
 * tensors are compressed only if this saves time. Nothing hides the exchange of the last gradient. A tensor sends at
 * least one entry. A tensor on a single rank is dense, and its backward computation also hides the exchange of other
 * tensors.
 *
 * Cost: O(tensors · 50).
 *
 * @returns one row per tensor, in ready order; densities in [ρ_min, 1].
 * @throws ArgumentError if a setting is out of range, or if the model or the profile has impossible values.
 *
 * @example
 * ```ts
 * const tensors = ["head", "body"].map((path) => ({ path, bytes: 4_000_000, backwardSeconds: 0.001 }));
 * const model = { startupSeconds: 0, secondsPerByte: 1e-8 };
 * const plan = planLags({ tensors }, { worldSize: 4, allReduce: model, allGather: model });
 * console.log(plan.map(({ path, density }) => `${path} ${density.toFixed(3)}`)); // ['head 0.003', 'body 0.001']
 * ```
 * Source: Shi et al. 2020, arXiv 1911.08727 (LAGS-SGD). Their released function always returns 0.001; this function
 * implements the rule of the paper.
 */
export const planLags = (
  profile: GradientProfile,
  { worldSize, allReduce, allGather, selectionSeconds = () => 0, minDensity = 0.001, entryBytes = 8 }: LagsOptions,
): readonly TensorDensity[] => {
  checkProfile(profile);
  const worldOf = typeof worldSize === "number" ? () => worldSize : worldSize;
  for (const size of typeof worldSize === "number" ? [worldSize] : profile.tensors.map(({ path }) => worldSize(path)))
    if (!(Number.isInteger(size) && size >= 1))
      throw new ArgumentError(
        `planLags: worldSize is ${size}, but must be a whole number from 1; use the number of ranks`,
      );
  if (!(minDensity > 0 && minDensity <= 1))
    throw new ArgumentError(`planLags: minDensity is ${minDensity}, but must be in (0, 1]; use a share such as 0.001`);
  if (!(entryBytes > 0))
    throw new ArgumentError(`planLags: entryBytes is ${entryBytes}, but must be above 0; use 8 for value and index`);
  /**
   * Seconds of backward computation that can hide each tensor's exchange: until the gradient of the next tensor to send
   * is ready.
   */
  const budgets: number[] = [];
  let hidden = 0;
  for (const [i, { path, backwardSeconds }] of [...profile.tensors.entries()].reverse()) {
    budgets[i] = hidden;
    hidden = worldOf(path) === 1 ? hidden + backwardSeconds : backwardSeconds;
  }
  return profile.tensors.map(({ path, bytes }, i) => {
    const ranks = worldOf(path);
    if (ranks === 1) return { path, density: 1 };
    const budget = budgets[i]!;
    const numElements = bytes / 4;
    const sparseSeconds = (density: number): number => {
      const numSent = Math.max(1, Math.floor(density * numElements));
      return selectionSeconds(numElements) + collectiveSeconds(allGather, ranks * numSent * entryBytes);
    };
    const hides = (density: number): boolean => sparseSeconds(density) <= budget;
    if (collectiveSeconds(allReduce, bytes) <= Math.max(budget, sparseSeconds(minDensity))) return { path, density: 1 };
    if (!hides(minDensity)) return { path, density: minDensity };
    if (hides(1)) return { path, density: 1 };
    // Bisection over the density, because a piecewise model has no closed-form inverse.
    let [fits, exceeds] = [minDensity, 1];
    for (let halving = 0; halving < 50; halving++) {
      const middle = (fits + exceeds) / 2;
      if (hides(middle)) fits = middle;
      else exceeds = middle;
    }
    return { path, density: fits };
  });
};
