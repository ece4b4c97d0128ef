import { ArgumentError } from "@skein/tensor-core";
import type { WasmModule } from "@skein/tensor-core/backend";
import type { Arena } from "../arena.ts";
import type { Blas } from "../blas.ts";
import { maxThreads } from "./parallel-region.ts";
import { startHelper } from "./start-helper.ts";
import type { TeamFunctions } from "./team.ts";
import { ThreadTeam } from "./thread-team.ts";

export interface TeamOptions {
  readonly threads: number;
  readonly module: WasmModule;
  readonly arena: Arena;
  readonly functions: TeamFunctions;
  readonly blas: Blas | undefined;
}

/** Number of polls before a waiting thread sleeps, about 50 µs: longer than most gaps between kernels. */
const spinsOnOwnCore = 10_000;
/**
 * Timeout in milliseconds for a helper to finish its part. A part takes milliseconds; the timeout also allows for an
 * overloaded machine.
 */
const answerMilliseconds = 60_000;

/** Whether this thread may block. The main thread of a browser must not block. */
const canBlock = (): boolean => {
  try {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 0);
    return true;
  } catch {
    return false;
  }
};

/**
 * Starts the helper threads of a backend.
 *
 * @throws ArgumentError if the number of threads is invalid. HostError, HelperError or ThreadFileError if the helper
 * threads cannot be started.
 */
export const openTeam = async ({ threads, module, arena, functions, blas }: TeamOptions): Promise<ThreadTeam> => {
  if (!Number.isInteger(threads) || threads < 1 || threads > maxThreads)
    throw new ArgumentError(`threads is ${threads}; use an integer from 1 to ${maxThreads}`);
  if (blas !== undefined && blas.inThreads === undefined)
    throw new ArgumentError(
      `threads is ${threads}, but helper threads cannot open this BLAS (inThreads is absent); use one thread, or the BLAS of openBlas`,
    );
  const spins = threads <= (globalThis.navigator?.hardwareConcurrency ?? 1) ? spinsOnOwnCore : 0;
  return ThreadTeam.open({
    threads,
    arena,
    functions,
    wait: { spins, canBlock: canBlock(), milliseconds: answerMilliseconds },
    start: (setup) => startHelper({ ...setup, module, memory: arena.memory, product: blas?.inThreads }),
  });
};
