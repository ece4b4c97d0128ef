/**
 * Sums over this rank's share of the held-out samples, by name: sum of the loss, count by which this sum is divided,
 * and sums that the model defines.
 */
export interface EvaluationSums {
  readonly lossSum: number;
  readonly count: number;
  readonly [name: string]: number;
}

/** Adds the sums of all ranks' shares, in rank order. */
export const totalSums = (parts: readonly EvaluationSums[]): EvaluationSums => {
  const total = new Map<string, number>();
  for (const part of parts)
    for (const [name, sum] of Object.entries(part)) total.set(name, (total.get(name) ?? 0) + sum);
  return { lossSum: 0, count: 0, ...Object.fromEntries(total) };
};
