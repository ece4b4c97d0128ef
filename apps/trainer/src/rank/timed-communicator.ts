import type { Communicator } from "@skein/tensor-core";
import type { CollectiveHandle } from "@skein/tensor-core/backend";

/**
 * Seconds that a thread has spent waiting for collectives: communication that computation did not hide, including waits
 * of ranks for each other.
 */
export interface WaitClock {
  seconds: number;
  /** Part of `seconds` spent waiting for all-to-alls: tokens sent to experts and back. Absent: no all-to-all so far. */
  allToAllSeconds?: number;
}

/** Wrap a communicator so that its waits are added to `clock`. */
export const timedCommunicator = (communicator: Communicator, clock: WaitClock): Communicator => {
  const allToAlls = new WeakSet<CollectiveHandle>();
  return {
    rank: communicator.rank,
    worldSize: communicator.worldSize,
    start: (request) => {
      const handle = communicator.start(request);
      if (request.kind === "all-to-all") allToAlls.add(handle);
      return handle;
    },
    wait: (handle) => {
      const began = performance.now();
      const stop = (): void => {
        const seconds = (performance.now() - began) / 1000;
        clock.seconds += seconds;
        if (allToAlls.has(handle)) clock.allToAllSeconds = (clock.allToAllSeconds ?? 0) + seconds;
      };
      const waiting = communicator.wait(handle);
      if (waiting !== undefined) return waiting.finally(stop);
      stop();
      return undefined;
    },
    algorithmOf: (handle) => communicator.algorithmOf?.(handle),
    bytesSent: () => communicator.bytesSent(),
    members: communicator.members,
    exchangeTexts: (text) => communicator.exchangeTexts(text),
    split: (partition, name) => timedCommunicator(communicator.split(partition, name), clock),
  };
};
