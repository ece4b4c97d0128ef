import type { WorldConnection } from "@skein/collectives/transport";
import type { ErrorKind } from "@skein/tensor-core";
import type { OpenOptions } from "./world.ts";

/** What the companion thread of a rank over MPI is started with. The only order that it gets later is to end. */
export interface CompanionInput {
  readonly connection: WorldConnection;
  readonly load: Pick<OpenOptions, "addon" | "cacheFolder" | "allowSingleton">;
}

/** What it tells its process. */
export type CompanionNews =
  | { readonly type: "connected" }
  | { readonly type: "failed"; readonly kind: ErrorKind; readonly code: string; readonly message: string };

/** Threads of a rank that are busy at once: it computes, its companion communicates, and MPI makes progress. */
export const threadsOfRank = 3;
