import type { WorldConnection } from "@skein/collectives/transport";
import type { ErrorKind } from "@skein/tensor-core";
import type { OpenOptions } from "./world.ts";

/** Start parameters of the companion thread of a rank over MPI. Its only later command is to end. */
export interface MpiCompanionInput {
  readonly connection: WorldConnection;
  readonly load: Pick<OpenOptions, "addon" | "cacheFolder" | "allowSingleton">;
}

/** Event from the companion to its process. */
export type MpiCompanionEvent =
  /** Communicators of its lanes; empty if MPI lets only one thread call it. */
  | { readonly type: "connected"; readonly communicators: readonly number[] }
  | { readonly type: "failed"; readonly kind: ErrorKind; readonly code: string; readonly message: string };

/** Threads of a rank that are busy at once: the compute thread, its companion, and the progress thread of MPI. */
export const threadsOfRank = 3;
