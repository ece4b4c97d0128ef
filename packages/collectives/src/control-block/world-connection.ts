import type { WasmMemory, WasmModule } from "@skein/tensor-core/backend";
import type { Facts } from "../facts.ts";
import type { Situation } from "../select.ts";

/** What the choice of algorithms goes by, beside the request; equal on all ranks. */
export type Preference = Pick<Situation, "hosts" | "link" | "order">;

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
  /** What else must be the same on all ranks; they compare it when they join. */
  readonly facts?: Facts;
}
