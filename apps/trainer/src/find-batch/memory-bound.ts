import type { Job } from "../job/job.ts";
import { ConfigError } from "../errors.ts";

const units: { readonly [unit: string]: number } = { "": 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };

/** Bytes that an option says: 2GiB, 512MiB, or a number. @throws ConfigError. */
export const memoryOption = (text: string): number => {
  const [, digits, unit] = /^(\d+(?:\.\d+)?)\s*([KMG]iB)?$/.exec(text.trim()) ?? [];
  const bytes = Number(digits) * units[unit ?? ""]!;
  if (!(bytes >= 1))
    throw new ConfigError([`--memory is ${JSON.stringify(text)}, but must be bytes above 0, such as 2GiB or 512MiB`]);
  return Math.floor(bytes);
};

/** Addresses of WebAssembly have 32 bits, and the ranks of a process share one memory. */
const processBytes = 2 ** 32;

/** What is left to others of the memory that is free now: evaluations, samples, the system. */
const usedShare = 0.8;

/** What all ranks of this machine may hold together, and why. */
export interface MemoryBound {
  readonly bytes: number;
  readonly reason: string;
}

/**
 * The bound of a job whose ranks are all on this machine.
 *
 * @param asked by the user, of all ranks together.
 * @param freeBytes of this machine.
 * @throws ConfigError for a GPU without `asked`: WebGPU does not tell how much memory a device has.
 */
export const memoryBound = (
  { backend, ranks, transport, network }: Pick<Job, "backend" | "ranks" | "transport" | "network">,
  asked: number | undefined,
  freeBytes: number,
): MemoryBound => {
  if (backend === "webgpu") {
    if (asked === undefined)
      throw new ConfigError([
        "--memory: a WebGPU device does not tell how much memory it has; give it, such as --memory 8GiB",
      ]);
    return { bytes: asked, reason: "--memory" };
  }
  const processes = transport === "threads" ? 1 : Math.ceil(ranks / network.ranksPerProcess);
  const bounds: readonly MemoryBound[] = [
    asked === undefined
      ? { bytes: Math.floor(usedShare * freeBytes), reason: `${usedShare} of what is free on this machine` }
      : { bytes: asked, reason: "--memory" },
    { bytes: processes * processBytes, reason: "what WebAssembly can address in a process" },
  ];
  return bounds.reduce((least, one) => (one.bytes < least.bytes ? one : least));
};
