import type { WorldConnection } from "@skein/collectives/transport";
import type { ErrorKind } from "@skein/tensor-core";
import type { OpenOptions } from "./world.ts";

/** What the companion thread of a rank over MPI is started with. The only order that it gets later is to end. */
export interface MpiCompanionInput {
  readonly connection: WorldConnection;
  readonly load: Pick<OpenOptions, "addon" | "cacheFolder" | "allowSingleton">;
}

/** What it tells its process. */
export type MpiCompanionEvent =
  /** Its lanes; none where MPI lets one thread alone call it. */
  | { readonly type: "connected"; readonly communicators: readonly number[] }
  | { readonly type: "failed"; readonly kind: ErrorKind; readonly code: string; readonly message: string };

/** Threads of a rank that are busy at once: it computes, its companion communicates, and MPI makes progress. */
export const threadsOfRank = 3;
