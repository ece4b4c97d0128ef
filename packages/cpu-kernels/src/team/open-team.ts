import { ArgumentError } from "@skein/tensor-core";
import type { WasmModule } from "@skein/tensor-core/backend";
import type { Arena } from "../arena.ts";
import type { Blas } from "../blas.ts";
import { mostThreads } from "./parallel-region.ts";
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

/** How often a thread looks for its turn before it sleeps, some 50 µs: longer than most of the gaps between kernels. */
const spinsOnOwnCore = 10_000;
/** A part takes milliseconds. Long enough for a machine that is short of everything. */
const answerMilliseconds = 60_000;

/** The main thread of a browser may not sleep. */
const mayBlock = (): boolean => {
  try {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 0);
    return true;
  } catch {
    return false;
  }
};

/**
 * Start the helpers of a backend.
 *
 * @throws ArgumentError for a number of threads that cannot be. HostError, HelperError, ThreadFileError where they
 * cannot be started.
 */
export const openTeam = async ({ threads, module, arena, functions, blas }: TeamOptions): Promise<ThreadTeam> => {
  if (!Number.isInteger(threads) || threads < 1 || threads > mostThreads)
    throw new ArgumentError(`threads: ${threads} cannot be; it is a whole number from 1 to ${mostThreads}`);
  if (blas !== undefined && blas.inThreads === undefined)
    throw new ArgumentError(
      `threads: ${threads} needs a BLAS that helper threads can open, and this one does not say how (inThreads); use one thread, or the BLAS of openBlas`,
    );
  const spins = threads <= (globalThis.navigator?.hardwareConcurrency ?? 1) ? spinsOnOwnCore : 0;
  return ThreadTeam.open({
    threads,
    arena,
    functions,
    wait: { spins, mayBlock: mayBlock(), milliseconds: answerMilliseconds },
    start: (setup) => startHelper({ ...setup, module, memory: arena.memory, product: blas?.inThreads }),
  });
};
