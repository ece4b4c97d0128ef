import type { WasmMemory, WasmModule } from "@skein/tensor-core/backend";
import type { Facts } from "../facts.ts";
import type { Situation } from "../select.ts";

/** What the choice of algorithms goes by, beside the request; equal on all ranks. */
export type Preference = Pick<Situation, "hosts" | "link" | "order">;

/** A connection to a peer that a rank's own thread reads and writes. */
export interface ExpressEnd {
  readonly peer: number;
  /** Its file descriptor, which does not block. */
  readonly fd: number;
  /** What the checksums of data that is sent cover. */
  readonly headerOnly: boolean;
}

/** What a thread needs to take part: shared memory and numbers, so it can be posted to a worker. */
export interface WorldConnection {
  readonly control: SharedArrayBuffer;
  readonly memory: WasmMemory;
  readonly kernels: WasmModule | "none";
  readonly rank: number;
  readonly worldSize: number;
  /** Ranks that are threads of this process, this one among them. */
  readonly localRanks: readonly number[];
  /** Only the companion can carry requests out, as it alone holds the sockets. */
  readonly companionOnly: boolean;
  readonly timeoutMilliseconds: number;
  readonly spins: number;
  readonly preference: Preference;
  /** Where the parts of small requests between threads lie. */
  readonly exchangeParts?: number;
  /** Connections for small requests, which the rank's thread then carries out itself. */
  readonly express?: readonly ExpressEnd[];
  /** What else must be the same on all ranks; they compare it when they join. */
  readonly facts?: Facts;
}
