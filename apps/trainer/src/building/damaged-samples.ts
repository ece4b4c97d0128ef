import type { DamagedImage } from "@skein/data/node";

/** More are counted only: who has so many wants a list of files, not lines in between. */
const mostTold = 20;

/** Damaged samples that were found, by whichever rank: images that others take the places of, and what is left out. */
export class DamagedSamples {
  private readonly names = new Set<string>();
  private numLeftOut = 0;

  /** How many were left out. */
  get leftOut(): number {
    return this.numLeftOut;
  }

  /** How many images were found that others take the places of. */
  get images(): number {
    return this.names.size - this.numLeftOut;
  }

  /** Take one. @returns a line for people, the first time that it is found. */
  add({ name, why, isLeftOut = false }: DamagedImage): string | undefined {
    if (this.names.has(name)) return undefined;
    this.names.add(name);
    if (isLeftOut) this.numLeftOut++;
    if (this.names.size > mostTold + 1) return undefined;
    if (this.names.size > mostTold) return `more than ${mostTold} samples are damaged; further ones are counted only`;
    return isLeftOut
      ? `${name} is left out: ${why}`
      : `${name} cannot be decoded (${why}); the next sound image takes its place`;
  }
}
