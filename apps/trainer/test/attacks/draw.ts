import { createHash } from "node:crypto";

/** Gives a whole number from 0 to `below` - 1. */
export type Draw = (below: number) => number;

/** Numbers that follow from a seed, one after the other. */
export const drawFrom = (seed: string): Draw => {
  let calls = 0;
  return (below) => createHash("sha256").update(`${seed} ${calls++}`).digest().readUIntBE(0, 6) % below;
};
