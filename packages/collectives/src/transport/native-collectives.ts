import type { CollectiveRequest } from "@skein/tensor-core/backend";
import type { Eventually } from "./transport.ts";

/**
 * Collectives executed without schedules: collectives of an engine such as MPI, and small collectives between threads.
 * Native collectives are an alternative to the algorithms of the table.
 */
export interface NativeCollectives {
  /** Algorithm name that `algorithmOf` returns for requests that native collectives execute. */
  readonly name: "native" | "exchange";
  /** Whether native collectives sum in rank order. */
  readonly rankOrder: boolean;
  /**
   * Size in bytes up to which requests are executed by a schedule and not by native collectives. The few messages of
   * such a schedule take less time than an engine call.
   */
  readonly schedulesUpTo: number;
  /** Whether native collectives can execute a request. Depends only on values that are equal on all ranks. */
  covers(request: CollectiveRequest): boolean;
  /**
   * Executes a request of all ranks of the world on a lane. `covers` must have returned true for the request.
   *
   * @param tag tag of the request, equal on all ranks.
   * @param nameOf returns the name of the request with a tag, for error messages.
   */
  run(request: CollectiveRequest, lane: number, tag: number, nameOf: (tag: number) => string): Eventually<void>;
  /** Returns the number of bytes that this rank sends for a request. */
  bytesSent(request: CollectiveRequest): number;
}

/**
 * Returns the minimum number of bytes that a rank sends for a request with any algorithm. Used for engines that do not
 * report the number of bytes.
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
