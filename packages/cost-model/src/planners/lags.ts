import { ArgumentError } from "@skein/tensor-core";
import { checkProfile, type GradientProfile } from "../gradient-profile.ts";
import { type CollectiveModel, collectiveSeconds } from "../collective-model.ts";

export interface LagsOptions {
  /** Ranks among which gradients are exchanged, or those of each; at 1 nothing is sent, and nothing waits. */
  readonly worldSize: number | ((path: string) => number);
  /** Of the dense gradient, by its bytes. */
  readonly allReduce: CollectiveModel;
  /** Of the payloads of all ranks, by the bytes of the result: P times what a rank sends. */
  readonly allGather: CollectiveModel;
  /** What choosing the kept entries of so many elements takes. Default: nothing. */
  readonly selectionSeconds?: (numElements: number) => number;
  /** Default: 0.001, as published. */
  readonly leastDensity?: number;
  /** Of one kept entry: value and index. Default: 8. */
  readonly entryBytes?: number;
}

/** A tensor and the share of its entries that is to be sent. */
export interface TensorDensity {
  readonly path: string;
  /** 1 is the whole gradient as it is, by all-reduce: dense. */
  readonly density: number;
}

/**
 * Choose how dense each gradient is sent, so that its exchange hides behind the backward computation of the next one
 * (LAGS-SGD): the largest
 *
 *     ρ ≤ 1  with  t_select + T_all-gather(P · 8 · ρn) ≤ t_b(next),   else ρ_min
 *
 * and 1, which is dense, where that hides too, or takes no longer than ρ_min does: small tensors lose nothing then. The
 * last gradient has nothing to hide behind. A tensor sends one entry at least; one that a rank has alone is dense, and
 * others hide behind its backward computation as well.
 *
 * Cost: O(tensors · 50).
 *
 * @returns a row for each tensor, in ready order; densities in [ρ_min, 1].
 * @throws ArgumentError for settings out of range, or a model or profile with impossible figures.
 *
 * Source: Shi et al. 2020, arXiv 1911.08727 (LAGS-SGD). Their released function returns 0.001 whatever it is asked;
 * this is the rule that it skips.
 */
export const planLags = (
  profile: GradientProfile,
  { worldSize, allReduce, allGather, selectionSeconds = () => 0, leastDensity = 0.001, entryBytes = 8 }: LagsOptions,
): readonly TensorDensity[] => {
  checkProfile(profile);
  const worldOf = typeof worldSize === "number" ? () => worldSize : worldSize;
  for (const size of typeof worldSize === "number" ? [worldSize] : profile.tensors.map(({ path }) => worldSize(path)))
    if (!(Number.isInteger(size) && size >= 1))
      throw new ArgumentError(`planLags: a world of ${size} ranks was given; use 1 or more`);
  if (!(leastDensity > 0 && leastDensity <= 1))
    throw new ArgumentError(`planLags: a least density of ${leastDensity} was given; it lies in (0, 1]`);
  if (!(entryBytes > 0))
    throw new ArgumentError(`planLags: entries of ${entryBytes} bytes were given; use a positive size`);
  /** Of each tensor, the backward computation up to the next one that is sent. */
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
      const kept = Math.max(1, Math.floor(density * numElements));
      return selectionSeconds(numElements) + collectiveSeconds(allGather, ranks * kept * entryBytes);
    };
    const hides = (density: number): boolean => sparseSeconds(density) <= budget;
    if (collectiveSeconds(allReduce, bytes) <= Math.max(budget, sparseSeconds(leastDensity)))
      return { path, density: 1 };
    if (!hides(leastDensity)) return { path, density: leastDensity };
    if (hides(1)) return { path, density: 1 };
    // A search, not a formula, so that a model of several pieces is met too.
    let [fits, exceeds] = [leastDensity, 1];
    for (let halving = 0; halving < 50; halving++) {
      const middle = (fits + exceeds) / 2;
      if (hides(middle)) fits = middle;
      else exceeds = middle;
    }
    return { path, density: fits };
  });
};
