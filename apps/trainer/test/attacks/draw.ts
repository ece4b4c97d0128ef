import { createHash } from "node:crypto";

/** Numbers that follow from a seed: each call gives the next one, a whole number from 0 to `below` - 1. */
export const drawFrom = (seed: string): ((below: number) => number) => {
  let calls = 0;
  return (below) => createHash("sha256").update(`${seed} ${calls++}`).digest().readUIntBE(0, 6) % below;
};

/** Counts by name. */
export class Tally {
  readonly counts: Record<string, number> = {};

  add(name: string): void {
    this.counts[name] = (this.counts[name] ?? 0) + 1;
  }
}
