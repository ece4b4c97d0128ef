/** Times of one part of a model, such as a layer, in a forward or backward pass with ZeRO-3. */
export interface GatheredUnit {
  readonly gatherSeconds: number;
  readonly computeSeconds: number;
  /** Seconds of the reduce-scatter of the part's gradients; 0 in a forward pass. */
  readonly reduceSeconds: number;
}

/**
 * Computes the seconds of a pass in which the weights are gathered part by part. A part's all-gather starts when the
 * previous part begins to compute, and the reduce-scatter of its gradients starts when the part has finished computing.
 * Collectives run one at a time in the order of their starts, and the pass ends with the last collective or
 * computation.
 *
 * Cost: O(units).
 */
export const gatheredPassSeconds = (units: readonly GatheredUnit[]): number => {
  let network = units[0]?.gatherSeconds ?? 0;
  let computed = 0;
  let gathered = network;
  for (const [index, { computeSeconds, reduceSeconds }] of units.entries()) {
    const begin = Math.max(computed, gathered);
    computed = begin + computeSeconds;
    const next = units[index + 1];
    if (next !== undefined && next.gatherSeconds > 0) network = Math.max(network, begin) + next.gatherSeconds;
    gathered = next === undefined ? gathered : next.gatherSeconds > 0 ? network : 0;
    if (reduceSeconds > 0) network = Math.max(network, computed) + reduceSeconds;
  }
  return Math.max(computed, network);
};
