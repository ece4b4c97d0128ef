import type { UpdateFigures } from "./update-figures.ts";

/** Updates that are left out: the first gradients are like none after them. */
const leftOut = 50;
const looked = 50;
/** Of a gradient, on average. What an optimizer changes by less, nobody can tell from momentum. */
const leastShare = 1e-4;

/**
 * Watches whether curvature acts at all: means of inputs and gradients can be so small that their product is lost
 * beside the damping.
 */
export class IdleCurvature {
  private readonly optimizer: { readonly kind: string; readonly damping?: number };
  private seen = 0;
  private sum = 0;

  /** @param optimizer of the job. */
  constructor(optimizer: { readonly kind: string; readonly damping?: number }) {
    this.optimizer = optimizer;
  }

  /** @returns what is worth telling of the updates so far, once. */
  look({ curvature }: UpdateFigures): string | undefined {
    if (curvature === undefined || this.seen === leftOut + looked) return undefined;
    this.seen++;
    if (this.seen > leftOut) this.sum += curvature;
    const share = this.sum / looked;
    if (this.seen < leftOut + looked || share >= leastShare) return undefined;
    const { kind, damping } = this.optimizer;
    return `curvature took ${(100 * Math.max(0, share)).toPrecision(1)} % off gradients over ${looked} steps, at least ${100 * leastShare} % is needed to matter: with damping ${damping} ${kind} is all but plain momentum; lower optimizer.damping by tens until "curvature" in metrics.jsonl grows`;
  }
}
