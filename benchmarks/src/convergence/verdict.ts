import type { Figures, Outcome } from "../studies/outcome.ts";
import type { Margin } from "./settings.ts";

/** Quality of a trained model on held-out samples: percentage of correct answers, or bits per byte. */
export interface Quality {
  readonly unit: "%" | "bits";
  /** Mean of the quality over the seeds. `least` is the minimum and `greatest` the maximum. */
  readonly mean: number;
  readonly least: number;
  readonly greatest: number;
  readonly seeds: number;
}

const qualityOfOne = ({ testAccuracy, bitsPerByte, testLoss }: Figures): number =>
  testAccuracy === undefined ? (bitsPerByte ?? testLoss / Math.LN2) : 100 * testAccuracy;

/** Returns the quality over all seeds, or undefined unless every seed is done. */
export const qualityOf = (outcomes: readonly (Outcome | undefined)[]): Quality | undefined => {
  const done = outcomes.filter((outcome) => outcome?.kind === "done");
  if (done.length === 0 || done.length < outcomes.length) return undefined;
  const values = done.map(qualityOfOne);
  return {
    unit: done[0]!.testAccuracy === undefined ? "bits" : "%",
    mean: values.reduce((sum, value) => sum + value, 0) / values.length,
    least: Math.min(...values),
    greatest: Math.max(...values),
    seeds: values.length,
  };
};

const isBetter = (one: Quality, other: Quality): boolean =>
  one.unit === "%" ? one.mean > other.mean : one.mean < other.mean;

/**
 * Returns the search run with the best quality; if several runs are equally good, returns the first of these runs. Runs
 * without a quality rank last.
 */
export const bestOf = <Try extends { readonly quality: Quality | undefined }>(tries: readonly Try[]): Try =>
  tries.reduce((so, next) =>
    next.quality !== undefined && (so.quality === undefined || isBetter(next.quality, so.quality)) ? next : so,
  );

/**
 * Result of comparing a method with dense training. `holds`: even the worst seed is within the margin. `fails`: the
 * mean is outside the margin. `undecided`: otherwise, or if there are fewer seeds than a claim needs.
 */
export type Standing = "holds" | "undecided" | "fails";

export interface Verdict {
  /**
   * Mean difference from the mean of the dense runs, in the unit of the quality; positive if worse. `best` and `worst`
   * are the same difference for the best and the worst seed.
   */
  readonly worseBy: number;
  readonly best: number;
  readonly worst: number;
  readonly margin: number;
  readonly standing: Standing;
}

/** Tolerance added to a margin, so that a margin met exactly counts as met despite rounding in the means of seeds. */
const rounding = 1e-9;

/**
 * Compares a method with its dense runs. Higher accuracy is better, fewer bits are better.
 *
 * @param needed Minimum number of seeds for a claim, both for the method and for dense training.
 */
export const compareQuality = (quality: Quality, dense: Quality, margin: Margin, needed: number): Verdict => {
  const isPercent = quality.unit === "%";
  const worseThan = (value: number): number => (isPercent ? dense.mean - value : value - dense.mean);
  const [best, worst] = [quality.least, quality.greatest].map(worseThan).toSorted((a, b) => a - b) as [number, number];
  const [worseBy, allowed] = [worseThan(quality.mean), isPercent ? margin.points : margin.bits];
  const decided = worst <= allowed + rounding && Math.min(quality.seeds, dense.seeds) >= needed;
  const standing = worseBy > allowed + rounding ? "fails" : decided ? "holds" : "undecided";
  return { worseBy, best, worst, margin: allowed, standing };
};
