import { ConfigError } from "@skein/cli/node";
import type { Job } from "@skein/job/node";

const units: { readonly [unit: string]: number } = { "": 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };

/** Parses a number of bytes, such as 2GiB, 512MiB or 1000000. @throws ConfigError. */
export const memoryOption = (text: string): number => {
  const [, digits, unit] = /^(\d+(?:\.\d+)?)\s*([KMG]iB)?$/.exec(text.trim()) ?? [];
  const bytes = Number(digits) * units[unit ?? ""]!;
  if (!(bytes >= 1))
    throw new ConfigError([`--memory is ${JSON.stringify(text)}, but must be bytes above 0, such as 2GiB or 512MiB`]);
  return Math.floor(bytes);
};

/**
 * Memory limit of a process in bytes: WebAssembly addresses have 32 bits, and all ranks of a process share one
 * WebAssembly memory.
 */
const processBytes = 2 ** 32;

/** Fraction of the free memory to use. The remaining memory is for evaluations, samples and the system. */
const usedShare = 0.8;

/** Memory limit in bytes of all ranks on this machine together, and the reason for the limit. */
export interface MemoryBound {
  readonly bytes: number;
  readonly reason: string;
}

/**
 * Returns the memory limit of a job whose ranks all run on this machine.
 *
 * @param requested limit given by the user, in bytes, for all ranks together.
 * @param freeBytes free memory of this machine.
 * @throws ConfigError if the job runs on a GPU and `requested` is absent, because WebGPU does not report the memory of
 * a device.
 */
export const memoryBound = (
  { backend, ranks, transport, network }: Pick<Job, "backend" | "ranks" | "transport" | "network">,
  requested: number | undefined,
  freeBytes: number,
): MemoryBound => {
  if (backend === "webgpu") {
    if (requested === undefined)
      throw new ConfigError([
        "--memory: a WebGPU device does not report its memory; give a limit, such as --memory 8GiB",
      ]);
    return { bytes: requested, reason: "--memory" };
  }
  const processes = transport === "threads" ? 1 : Math.ceil(ranks / network.ranksPerProcess);
  const bounds: readonly MemoryBound[] = [
    requested === undefined
      ? { bytes: Math.floor(usedShare * freeBytes), reason: `${usedShare} of the free memory of this machine` }
      : { bytes: requested, reason: "--memory" },
    { bytes: processes * processBytes, reason: "the limit of WebAssembly per process" },
  ];
  return bounds.reduce((least, one) => (one.bytes < least.bytes ? one : least));
};
