import type { UpdateFigures } from "./update-figures.ts";

/** Number of initial updates to skip, because the first gradients are not typical. */
const skippedUpdates = 50;
const observedUpdates = 50;
/**
 * Minimum share of the gradient that curvature must change, on average over updates. Below this share, the optimizer is
 * practically momentum.
 */
const minShare = 1e-4;

/**
 * Detects curvature that has no effect, because the damping is much larger than the product of the statistics of inputs
 * and gradients.
 */
export class IdleCurvature {
  private readonly optimizer: { readonly kind: string; readonly damping?: number };
  private numSeen = 0;
  private sum = 0;

  constructor(optimizer: { readonly kind: string; readonly damping?: number }) {
    this.optimizer = optimizer;
  }

  /**
   * Takes the metrics of an update into account. @returns a remark for the user, at most once per run; otherwise
   * undefined.
   */
  look({ curvature }: UpdateFigures): string | undefined {
    if (curvature === undefined || this.numSeen === skippedUpdates + observedUpdates) return undefined;
    this.numSeen++;
    if (this.numSeen > skippedUpdates) this.sum += curvature;
    const share = this.sum / observedUpdates;
    if (this.numSeen < skippedUpdates + observedUpdates || share >= minShare) return undefined;
    const { kind, damping } = this.optimizer;
    return `curvature changed gradients by ${(100 * Math.max(0, share)).toPrecision(1)} % over ${observedUpdates} steps, but at least ${100 * minShare} % is needed to matter: with damping ${damping}, ${kind} is nearly plain momentum; lower optimizer.damping by factors of 10 until "curvature" in metrics.jsonl grows`;
  }
}
