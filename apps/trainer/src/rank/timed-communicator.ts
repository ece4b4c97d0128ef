import type { Communicator } from "@skein/tensor-core";
import type { CollectiveHandle } from "@skein/tensor-core/backend";

/**
 * Seconds that a thread has spent waiting for collectives. This is the communication time not hidden by computation,
 * including waits for slower ranks.
 */
export interface WaitClock {
  seconds: number;
  /**
   * Part of `seconds` spent waiting for all-to-alls, which send tokens to experts and back. Absent: no all-to-all so
   * far.
   */
  allToAllSeconds?: number;
}

/** Returns a communicator that adds the time of its waits to `clock`, and otherwise behaves like `communicator`. */
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
