import type { WasmMemory, WasmModule } from "@skein/tensor-core/backend";
import type { Facts } from "../facts.ts";
import type { SelectionOptions } from "../select.ts";

/** Settings by which algorithms are chosen, apart from the request. Equal on all ranks. */
export type Preference = Pick<SelectionOptions, "hosts" | "link" | "order">;

/** A connection to a peer that a rank's own thread reads and writes. */
export interface ExpressEnd {
  readonly peer: number;
  /** Non-blocking file descriptor of the socket. */
  readonly fd: number;
  /** Whether checksums of sent data frames cover the header only. */
  readonly headerOnly: boolean;
}

/** Everything a thread needs to join a world: shared memory and numbers, so it can be posted to a worker. */
export interface WorldConnection {
  readonly control: SharedArrayBuffer;
  readonly memory: WasmMemory;
  readonly kernels: WasmModule | "none";
  readonly rank: number;
  readonly worldSize: number;
  /** Ranks that are threads of this process, including this one. */
  readonly localRanks: readonly number[];
  /** Whether only the companion can execute requests, because only it owns the sockets. */
  readonly companionOnly: boolean;
  readonly timeoutMilliseconds: number;
  readonly spins: number;
  readonly preference: Preference;
  /** Byte offset in `memory` of the parts of small requests between threads. Absent: no exchanges. */
  readonly exchangeParts?: number;
  /** Connections for small requests, which the rank's thread executes itself. Absent: none. */
  readonly express?: readonly ExpressEnd[];
  /** Further settings that must be equal on all ranks. Ranks compare them when they join. */
  readonly facts?: Facts;
}
