import { createHash } from "node:crypto";

/** Returns a random integer from 0 to `below` − 1. */
export type Draw = (below: number) => number;

/** Returns a generator of pseudo-random numbers from a seed. */
export const drawFrom = (seed: string): Draw => {
  let calls = 0;
  return (below) => createHash("sha256").update(`${seed} ${calls++}`).digest().readUIntBE(0, 6) % below;
};
