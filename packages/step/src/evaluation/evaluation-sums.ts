/**
 * Sums over this rank's part of the held-out samples, by name: sum of the loss, count by which this sum is divided, and
 * sums that the model defines.
 */
export interface EvaluationSums {
  readonly lossSum: number;
  readonly count: number;
  readonly [name: string]: number;
}

/** Adds the sums of all parts, in the order of the parts. */
export const totalSums = (parts: readonly EvaluationSums[]): EvaluationSums => {
  const total = new Map<string, number>();
  for (const part of parts)
    for (const [name, sum] of Object.entries(part)) total.set(name, (total.get(name) ?? 0) + sum);
  return { lossSum: 0, count: 0, ...Object.fromEntries(total) };
};
