import type { CollectiveRequest } from "@skein/tensor-core/backend";
import type { Eventually } from "./transport.ts";

/**
 * Collectives that are executed without schedules: those of an engine such as MPI, and small ones between threads. They
 * extend the table of algorithms.
 */
export interface NativeCollectives {
  /** Algorithm name that `algorithmOf` returns for requests executed by it. */
  readonly name: "native" | "exchange";
  /** Whether sums are in rank order. */
  readonly rankOrder: boolean;
  /**
   * Maximum size of requests that use schedules instead, bytes, because their few messages cost less than a call of the
   * engine.
   */
  readonly schedulesUpTo: number;
  /** Whether it can execute this request. Depends only on values that are equal on all ranks. */
  covers(request: CollectiveRequest): boolean;
  /**
   * Executes a covered request of the whole world on a lane.
   *
   * @param tag tag of the request, equal on all ranks.
   * @param nameOf returns the name of a tag's request, for errors.
   */
  run(request: CollectiveRequest, lane: number, tag: number, nameOf: (tag: number) => string): Eventually<void>;
  /** Number of bytes that this rank sends for a request. */
  bytesSent(request: CollectiveRequest): number;
}

/**
 * Minimum number of bytes that a rank sends for a request with any algorithm; used for engines that do not report
 * bytes.
 */
export const minBytes = ({ kind, input }: CollectiveRequest, worldSize: number): number => {
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
      return (others * input.byteLength) / worldSize; // All ranks together send the operand once for each rank except the root.
    default:
      return 0;
  }
};
