import type { WasmMemory, WasmModule } from "@skein/tensor-core/backend";
import type { Facts } from "../facts.ts";
import type { SelectionOptions } from "../select.ts";

/** Settings for the choice of algorithms that do not depend on the request. These settings are equal on all ranks. */
export type Preference = Pick<SelectionOptions, "hosts" | "link" | "order">;

/** One end of an express connection, which a rank's compute thread reads and writes. */
export interface ExpressEnd {
  readonly peer: number;
  /** Non-blocking file descriptor of the socket. */
  readonly fd: number;
  /** Whether the checksums of sent data frames cover only the header. */
  readonly headerOnly: boolean;
}

/**
 * All values that a thread needs to join a world. The values are shared memory, WebAssembly modules and plain data, so
 * the connection can be posted to a worker.
 */
export interface WorldConnection {
  readonly control: SharedArrayBuffer;
  readonly memory: WasmMemory;
  readonly kernels: WasmModule | "none";
  readonly rank: number;
  readonly worldSize: number;
  /** Ranks that are threads of this process, including this rank. */
  readonly localRanks: readonly number[];
  /** Whether only the companion can execute requests, because only the companion owns the sockets. */
  readonly companionOnly: boolean;
  readonly timeoutMilliseconds: number;
  readonly spins: number;
  readonly preference: Preference;
  /**
   * Byte offset, in `memory`, of the exchange parts, which are the operands of small requests between threads. Absent:
   * no exchanges.
   */
  readonly exchangeParts?: number;
  /**
   * Express connections, for small requests that the rank's compute thread executes. Absent: no express connections.
   */
  readonly express?: readonly ExpressEnd[];
  /** Additional settings that must be equal on all ranks. Ranks compare these settings when they join. */
  readonly facts?: Facts;
}
