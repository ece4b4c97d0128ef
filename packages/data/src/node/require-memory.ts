import { readFileSync } from "node:fs";
import { freemem, totalmem } from "node:os";
import { join } from "node:path";
import { DataError } from "../errors.ts";

const controlGroups = "/sys/fs/cgroup";

/** Returns the path of the memory statistics of a control group. @param groups Content of `/proc/self/cgroup`. */
export const memoryFigures = (groups: string): string | undefined => {
  const [, version2] = /^0::(.*)$/m.exec(groups) ?? [];
  const [, version1] = /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$/m.exec(groups) ?? [];
  if (version1 !== undefined) return join(controlGroups, "memory", version1, "memory.stat");
  return version2 === undefined ? undefined : join(controlGroups, version2, "memory.stat");
};

/**
 * Returns the size in bytes of the page cache of a control group. The system reclaims the page cache when programs need
 * memory.
 */
export const cachedBytes = (figures: string): number => {
  const all = /^total_(?:in)?active_file /m.test(figures) ? "total_" : "";
  let sum = 0;
  for (const [, bytes] of figures.matchAll(new RegExp(`^${all}(?:in)?active_file (\\d+)$`, "gm"))) sum += Number(bytes);
  return sum;
};

/** Returns the size in bytes of the page cache of this process's control group; 0 if unknown. */
const cachedForProcess = (): number => {
  try {
    const path = memoryFigures(readFileSync("/proc/self/cgroup", "utf8"));
    return path === undefined ? 0 : cachedBytes(readFileSync(path, "utf8"));
  } catch {
    return 0; // another operating system, or a container that hides the statistics
  }
};

/** Returns the number of bytes that this process can still allocate, limited by the machine and by the container. */
export const freeMemory = (): number => {
  const ofMachine = freemem();
  const ofContainer = process.availableMemory();
  const bound = process.constrainedMemory(); // without a limit: 0, or larger than any machine
  if (ofMachine <= ofContainer || bound === 0 || bound > totalmem()) return Math.min(ofMachine, ofContainer);
  // The page cache of a container counts as used memory, but can be reclaimed.
  return Math.min(ofMachine, bound, ofContainer + cachedForProcess());
};

/**
 * Throws if memory is insufficient.
 *
 * @param what Plural subject of the error message, such as "the texts".
 * @throws DataError if `bytes` exceeds the free memory.
 */
export const requireMemory = (bytes: number, what: string, cure: string): void => {
  const free = freeMemory();
  if (bytes <= free) return;
  const inGiB = (amount: number): string => `${(amount / 2 ** 30).toFixed(1)} GiB`;
  throw new DataError(`${what} take ${inGiB(bytes)}, but only ${inGiB(free)} of memory are free; ${cure}`);
};
