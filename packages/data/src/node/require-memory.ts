import { freemem } from "node:os";
import { DataError } from "../errors.ts";

/**
 * @param what takes so many bytes, as a subject in the plural.
 * @throws DataError where there is no room for it.
 */
export const requireMemory = (bytes: number, what: string, cure: string): void => {
  const free = freemem();
  if (bytes <= free) return;
  const inGiB = (amount: number): string => `${(amount / 2 ** 30).toFixed(1)} GiB`;
  throw new DataError(`${what} take ${inGiB(bytes)}, but ${inGiB(free)} of memory are free; ${cure}`);
};
