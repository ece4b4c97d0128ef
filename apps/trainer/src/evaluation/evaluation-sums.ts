/** Sums over this rank's part of the held-out samples, by the names that the model gives them. */
export interface EvaluationSums {
  readonly lossSum: number;
  readonly count: number;
  readonly [name: string]: number;
}

/** Sums over all parts of the samples, added up in their order. */
export const totalSums = (parts: readonly EvaluationSums[]): EvaluationSums => {
  const total = new Map<string, number>();
  for (const part of parts)
    for (const [name, sum] of Object.entries(part)) total.set(name, (total.get(name) ?? 0) + sum);
  return { lossSum: 0, count: 0, ...Object.fromEntries(total) };
};
