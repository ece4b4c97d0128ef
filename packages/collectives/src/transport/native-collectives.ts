import type { CollectiveRequest } from "@skein/tensor-core/backend";
import type { Eventually } from "./transport.ts";

/**
 * Collectives that do not go by schedules: those that an engine brings along, such as MPI's, and small ones between
 * threads. One more row of the algorithm table.
 */
export interface NativeCollectives {
  /** What `algorithmOf` tells of a request that it has executed. */
  readonly name: "native" | "exchange";
  /** Whether its sums are in the order of ranks. */
  readonly rankOrder: boolean;
  /** Requests of at most so many bytes go by schedules, whose few messages cost less than the engine's call. */
  readonly schedulesUpTo: number;
  /** Whether it has one for this request. Depends on nothing that differs between ranks. */
  covers(request: CollectiveRequest): boolean;
  /**
   * Execute a request of the whole world on a lane, one that it covers.
   *
   * @param tag the same on all ranks; `nameOf` tells what a tag's request is called in errors.
   */
  run(request: CollectiveRequest, lane: number, tag: number, nameOf: (tag: number) => string): Eventually<void>;
  /** Bytes that this rank sends for it. */
  bytesSent(request: CollectiveRequest): number;
}

/** Bytes that a rank must send for a request, whatever executes it: what is counted for engines that do not say. */
export const leastBytes = ({ kind, input }: CollectiveRequest, worldSize: number): number => {
  const others = worldSize - 1;
  switch (kind) {
    case "all-reduce":
      return (2 * others * input.byteLength) / worldSize;
    case "reduce-scatter":
    case "all-to-all":
      return (others * input.byteLength) / worldSize;
    case "all-gather":
      return others * input.byteLength;
    case "broadcast":
    case "reduce":
      return (others * input.byteLength) / worldSize; // once for each rank but the root, by all ranks together
    default:
      return 0;
  }
};
