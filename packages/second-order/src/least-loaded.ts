/**
 * Assigns computations to ranks: in descending order of cost, each to the rank with the smallest total cost so far.
 * Returns the rank of each computation, in the order of `costs`.
 */
export const leastLoaded = (costs: readonly number[], numRanks: number): number[] => {
  const loads = Array.from({ length: numRanks }, () => 0);
  const owners: number[] = [];
  for (const [i, cost] of [...costs.entries()].sort(([a, x], [b, y]) => y - x || a - b)) {
    const rank = loads.indexOf(Math.min(...loads));
    owners[i] = rank;
    loads[rank]! += cost;
  }
  return owners;
};
