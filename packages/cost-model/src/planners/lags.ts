import { ArgumentError } from "@skein/tensor-core";
import { checkProfile, type GradientProfile } from "../gradient-profile.ts";
import { type CollectiveModel, collectiveSeconds } from "../collective-model.ts";

export interface LagsOptions {
  /**
   * Number of ranks that exchange gradients, or a function that returns it per path. With 1 rank nothing is sent and
   * nothing waits.
   */
  readonly worldSize: number | ((path: string) => number);
  /** All-reduce of the dense gradient, by its bytes. */
  readonly allReduce: CollectiveModel;
  /** All-gather of the payloads of all ranks, by the bytes of the result: P times the bytes that a rank sends. */
  readonly allGather: CollectiveModel;
  /** Seconds to select the entries to send out of `numElements` elements. Default: 0. */
  readonly selectionSeconds?: (numElements: number) => number;
  /** ρ_min. Default: 0.001, as published. */
  readonly minDensity?: number;
  /** Bytes of one sent entry: value and index. Default: 8. */
  readonly entryBytes?: number;
}

/** A tensor with its density, the share of entries to send. */
export interface TensorDensity {
  readonly path: string;
  /** Share of entries to send. 1 means the dense gradient, by all-reduce. */
  readonly density: number;
}

/**
 * Choose a density for each gradient such that its exchange is hidden by the backward computation of the next gradient
 * (LAGS-SGD): the largest
 *
 *     ρ ≤ 1  with  t_select + T_all-gather(P · 8 · ρn) ≤ t_b(next),   otherwise ρ_min
 *
 * The density is 1, dense, if the dense exchange is hidden too, or takes no longer than that with ρ_min, so small
 * tensors lose nothing. Nothing hides the exchange of the last gradient. A tensor sends at least one entry. A tensor on
 * a single rank is dense, and its backward computation also hides the exchange of others.
 *
 * Cost: O(tensors · 50).
 *
 * @returns one row per tensor, in ready order; densities in [ρ_min, 1].
 * @throws ArgumentError for settings out of range, or a model or profile with impossible values.
 *
 * Source: Shi et al. 2020, arXiv 1911.08727 (LAGS-SGD). Their released function always returns 0.001; this is the rule
 * that it leaves out.
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
  /** Seconds of backward computation up to the next sent tensor, for each tensor. */
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
    // Bisection, because a piecewise model has no closed form.
    let [fits, exceeds] = [minDensity, 1];
    for (let halving = 0; halving < 50; halving++) {
      const middle = (fits + exceeds) / 2;
      if (hides(middle)) fits = middle;
      else exceeds = middle;
    }
    return { path, density: fits };
  });
};
