import { mean } from "@skein/measuring";
/** Statistics on the tokens of expert layers, means over layers and steps. */
export interface ExpertFigures {
  /** Share of choices that were dropped for lack of capacity. */
  readonly droppedShare: number;
  /** Number of tokens of the busiest expert over the mean of all experts. */
  readonly imbalance: number;
  /**
   * Entropy of the gate's distribution over experts, in nats; ln of the number of experts if the distribution is
   * uniform.
   */
  readonly entropy: number;
}

/** Mean of each figure; undefined for an empty list. */
export const meanFigures = (all: readonly ExpertFigures[]): ExpertFigures | undefined => {
  if (all.length === 0) return undefined;
  const meanOf = (name: keyof ExpertFigures): number => mean(all.map((figures) => figures[name]));
  return { droppedShare: meanOf("droppedShare"), imbalance: meanOf("imbalance"), entropy: meanOf("entropy") };
};

/** @param steps lines of `metrics.jsonl`. @returns undefined for a model without experts. */
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
