import type { DamagedImage } from "@skein/data/node";

/** Maximum number of damaged samples reported by name; further damaged samples are only counted. */
const maxReported = 20;

/** Damaged samples found by all ranks: replaced images and skipped samples. */
export class DamagedSamples {
  private readonly names = new Set<string>();
  private numLeftOut = 0;

  /** Number of skipped samples. */
  get leftOut(): number {
    return this.numLeftOut;
  }

  /** Number of damaged images that were replaced by other images. */
  get images(): number {
    return this.names.size - this.numLeftOut;
  }

  /**
   * Records a damaged sample.
   * @returns a human-readable line the first time the sample is found, otherwise undefined.
   */
  add({ name, why, isLeftOut = false }: DamagedImage): string | undefined {
    if (this.names.has(name)) return undefined;
    this.names.add(name);
    if (isLeftOut) this.numLeftOut++;
    if (this.names.size > maxReported + 1) return undefined;
    if (this.names.size > maxReported)
      return `more than ${maxReported} samples are damaged; further damaged samples are only counted`;
    return isLeftOut
      ? `${name} is skipped: ${why}`
      : `${name} cannot be decoded (${why}); the next valid image replaces it`;
  }
}
