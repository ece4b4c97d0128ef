/** Sums over this rank's part of the held-out samples, by the names that the model gives them. */
export interface EvaluationSums {
  readonly lossSum: number;
  readonly count: number;
  readonly [name: string]: number;
}

/** Sums over all parts of the samples, added up in their order. */
export const totalSums = (parts: readonly EvaluationSums[]): EvaluationSums => {
  const total: Record<string, number> & EvaluationSums = { lossSum: 0, count: 0 };
  for (const part of parts) for (const [name, sum] of Object.entries(part)) total[name] = (total[name] ?? 0) + sum;
  return total;
};
