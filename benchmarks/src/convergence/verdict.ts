import type { Figures, Outcome } from "../studies/outcome.ts";
import type { Margin } from "./settings.ts";

/** How good a trained model is on held-out samples: percent of right answers, or bits per byte. */
export interface Quality {
  readonly unit: "%" | "bits";
  /** Mean over the seeds. */
  readonly mean: number;
  /** Greatest less smallest. */
  readonly range: number;
  readonly seeds: number;
}

const qualityOfOne = ({ testAccuracy, bitsPerByte, testLoss }: Figures): number =>
  testAccuracy === undefined ? (bitsPerByte ?? testLoss / Math.LN2) : 100 * testAccuracy;

/** @returns nothing unless every seed is done. */
export const qualityOf = (outcomes: readonly (Outcome | undefined)[]): Quality | undefined => {
  const done = outcomes.filter((outcome) => outcome?.kind === "done");
  if (done.length === 0 || done.length < outcomes.length) return undefined;
  const values = done.map(qualityOfOne);
  return {
    unit: done[0]!.testAccuracy === undefined ? "bits" : "%",
    mean: values.reduce((sum, value) => sum + value, 0) / values.length,
    range: Math.max(...values) - Math.min(...values),
    seeds: values.length,
  };
};

export interface Verdict {
  /** How much worse than the dense run, in its unit; below zero is better. */
  readonly worseBy: number;
  readonly margin: number;
  readonly holds: boolean;
}

/** Set a method beside its dense run. Accuracy counts upwards, bits downwards. */
export const compareQuality = (quality: Quality, dense: Quality, margin: Margin): Verdict => {
  const worseBy = quality.unit === "%" ? dense.mean - quality.mean : quality.mean - dense.mean;
  const allowed = quality.unit === "%" ? margin.points : margin.bits;
  return { worseBy, margin: allowed, holds: worseBy <= allowed };
};
