import type { DamagedImage } from "@skein/data/node";

/** More are counted only: who has so many wants a list of files, not lines in between. */
const mostTold = 20;

/** Damaged images that were found, by whichever rank, and that others take the places of. */
export class DamagedImages {
  private readonly names = new Set<string>();

  /** How many were found. */
  get count(): number {
    return this.names.size;
  }

  /** Take one. @returns a line for people, the first time that it is found. */
  add({ name, why }: DamagedImage): string | undefined {
    if (this.names.has(name)) return undefined;
    this.names.add(name);
    if (this.count > mostTold + 1) return undefined;
    return this.count > mostTold
      ? `more than ${mostTold} images cannot be decoded; further ones are counted only`
      : `${name} cannot be decoded (${why}); the next sound image takes its place`;
  }
}
