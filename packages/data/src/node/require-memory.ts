import { freemem } from "node:os";
import { DataError } from "../errors.ts";

/** Bytes of memory that this process may still take: of the machine, and of the container that it runs in. */
export const freeMemory = (): number => Math.min(freemem(), process.availableMemory());

/**
 * @param what takes so many bytes, as a subject in the plural.
 * @throws DataError where there is no room for it.
 */
export const requireMemory = (bytes: number, what: string, cure: string): void => {
  const free = freeMemory();
  if (bytes <= free) return;
  const inGiB = (amount: number): string => `${(amount / 2 ** 30).toFixed(1)} GiB`;
  throw new DataError(`${what} take ${inGiB(bytes)}, but ${inGiB(free)} of memory are free; ${cure}`);
};
