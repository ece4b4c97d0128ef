import type { WorldConnection } from "@skein/collectives/transport";
import type { ErrorKind } from "@skein/tensor-core";
import type { OpenMpiOptions } from "./world.ts";

/**
 * Start parameters of the companion thread of a rank over MPI. After the start, the thread accepts only a command to
 * stop.
 */
export interface MpiCompanionInput {
  readonly connection: WorldConnection;
  readonly load: Pick<OpenMpiOptions, "addon" | "cacheFolder" | "allowSingleton">;
}

/** Event from the companion thread to its process. */
export type MpiCompanionEvent =
  /**
   * The companion has connected. `communicators`: communicators of its lanes; empty if only one thread may call MPI.
   */
  | { readonly type: "connected"; readonly communicators: readonly number[] }
  | { readonly type: "failed"; readonly kind: ErrorKind; readonly code: string; readonly message: string };

/**
 * Number of threads of a rank that are busy at the same time: the compute thread, its companion, and the progress
 * thread of MPI.
 */
export const threadsOfRank = 3;
