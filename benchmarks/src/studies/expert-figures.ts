import { mean } from "@skein/measuring";
/** Token statistics of expert layers, averaged over layers and steps. */
export interface ExpertFigures {
  /** Share of expert choices that were dropped for lack of capacity. */
  readonly droppedShare: number;
  /** Number of tokens of the busiest expert / mean number of tokens per expert. */
  readonly imbalance: number;
  /**
   * Entropy of the gate's distribution over experts, in nats. For a uniform distribution, ln of the number of experts.
   */
  readonly entropy: number;
}

/** Returns the mean of each token statistic, or undefined for an empty list. */
export const meanFigures = (all: readonly ExpertFigures[]): ExpertFigures | undefined => {
  if (all.length === 0) return undefined;
  const meanOf = (name: keyof ExpertFigures): number => mean(all.map((figures) => figures[name]));
  return { droppedShare: meanOf("droppedShare"), imbalance: meanOf("imbalance"), entropy: meanOf("entropy") };
};

/** Computes the token statistics from lines of `metrics.jsonl`. @returns undefined for a model without experts. */
export const expertFigures = (steps: readonly object[]): ExpertFigures | undefined => {
  const all: ExpertFigures[] = [];
  for (const step of steps) {
    const figures = Object.entries(step) as [string, number][];
    const layers = Map.groupBy(figures, ([name]) => /^(block-\d+)\./.exec(name)?.[1]);
    layers.delete(undefined);
    for (const [layer, own] of layers) {
      const loads = own.flatMap(([name, value]) => (name.startsWith(`${layer}.load_E.`) ? [value] : []));
      const of = new Map(own);
      all.push({
        droppedShare: of.get(`${layer}.droppedShare`)!,
        imbalance: Math.max(...loads) / mean(loads),
        entropy: of.get(`${layer}.entropy`)!,
      });
    }
  }
  return meanFigures(all);
};
