import { readFileSync } from "node:fs";
import { freemem, totalmem } from "node:os";
import { join } from "node:path";
import { DataError } from "../errors.ts";

const controlGroups = "/sys/fs/cgroup";

/** File with the figures of memory of a control group. @param groups what `/proc/self/cgroup` holds. */
export const memoryFigures = (groups: string): string | undefined => {
  const [, version2] = /^0::(.*)$/m.exec(groups) ?? [];
  const [, version1] = /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$/m.exec(groups) ?? [];
  if (version1 !== undefined) return join(controlGroups, "memory", version1, "memory.stat");
  return version2 === undefined ? undefined : join(controlGroups, version2, "memory.stat");
};

/** Bytes of files that the system keeps for a control group, and gives up where programs need the memory. */
export const cachedBytes = (figures: string): number => {
  const all = /^total_(?:in)?active_file /m.test(figures) ? "total_" : "";
  let sum = 0;
  for (const [, bytes] of figures.matchAll(new RegExp(`^${all}(?:in)?active_file (\\d+)$`, "gm"))) sum += Number(bytes);
  return sum;
};

/** The same of the group that this process is in; 0 where nobody says. */
const cachedForProcess = (): number => {
  try {
    const path = memoryFigures(readFileSync("/proc/self/cgroup", "utf8"));
    return path === undefined ? 0 : cachedBytes(readFileSync(path, "utf8"));
  } catch {
    return 0; // another system, or a container that hides it
  }
};

/** Bytes of memory that this process may still take: of the machine, and of the container that it runs in. */
export const freeMemory = (): number => {
  const ofMachine = freemem();
  const ofContainer = process.availableMemory();
  const bound = process.constrainedMemory(); // without one 0, or more than any machine has
  if (ofMachine <= ofContainer || bound === 0 || bound > totalmem()) return Math.min(ofMachine, ofContainer);
  // What a container has read of files counts as used until it is needed.
  return Math.min(ofMachine, bound, ofContainer + cachedForProcess());
};

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
