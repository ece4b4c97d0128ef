import type { CollectiveRequest } from "@skein/tensor-core/backend";

/** Collectives that an engine brings along, such as MPI's: one more row of the algorithm table. */
export interface NativeCollectives {
  /** Whether it has one for this request. Depends on nothing that differs between ranks. */
  covers(request: CollectiveRequest): boolean;
  /**
   * Execute a request of the whole world on a lane; undefined where `covers` says no.
   *
   * @param collective what it is called in errors.
   */
  run(request: CollectiveRequest, lane: number, collective: string): Promise<void> | undefined;
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
      return (others * input.byteLength) / worldSize; // all ranks together send it to each but the root
    default:
      return 0;
  }
};
