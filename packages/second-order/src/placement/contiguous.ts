import { checkNumRanks, checkWeights } from "./weights.ts";

/**
 * Partitions an ordered list of weights into P contiguous groups with the smallest possible maximum load. M(p, j) is
 * the smallest maximum load for the first j weights in p groups:
 *
 *     M(p, j) = min over i ≤ j of max(M(p − 1, i), w(i) + … + w(j − 1)),   M(0, 0) = 0
 *
 * Groups may be empty, so there may be fewer weights than ranks.
 *
 * Cost: O(P · N²).
 *
 * @returns the group of each weight, ascending.
 * @throws ArgumentError if there are no weights or no ranks, or a weight is negative or infinite.
 *
 * Source: the partition of DP-KFAC by blocks, Zhang, Shi, Wang and Li 2022, arXiv 2206.15143; Bellman's recurrence.
 */
export const contiguousGroups = (weights: readonly number[], numRanks: number): readonly number[] => {
  checkWeights("contiguousGroups", weights);
  checkNumRanks("contiguousGroups", numRanks);
  const length = weights.length;
  let least: readonly number[] = Array.from({ length: length + 1 }, (_, j) => (j === 0 ? 0 : Infinity));
  const begins: number[][] = [];
  for (let group = 0; group < numRanks; group++) {
    const next: number[] = [];
    const begin: number[] = [];
    for (let j = 0; j <= length; j++) {
      [next[j], begin[j]] = [least[j]!, j];
      let load = 0;
      for (let i = j - 1; i >= 0; i--) {
        load += weights[i]!;
        const largest = Math.max(least[i]!, load);
        if (largest < next[j]!) [next[j], begin[j]] = [largest, i];
      }
    }
    begins.push(begin);
    least = next;
  }
  const groups = new Array<number>(length).fill(0);
  let end = length;
  for (let group = numRanks - 1; group >= 0; group--) {
    const begin = begins[group]![end]!;
    groups.fill(group, begin, end);
    end = begin;
  }
  return groups;
};
