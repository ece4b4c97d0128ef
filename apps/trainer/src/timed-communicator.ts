import type { Communicator } from "@skein/tensor-core";

/**
 * Seconds that a thread has spent waiting for collectives: communication that computation did not hide, ranks' waiting
 * for each other included.
 */
export interface WaitClock {
  seconds: number;
}

/** The same communicator, with its waits on `clock`. */
export const timedCommunicator = (communicator: Communicator, clock: WaitClock): Communicator => ({
  rank: communicator.rank,
  worldSize: communicator.worldSize,
  start: (request) => communicator.start(request),
  wait: (handle) => {
    const began = performance.now();
    const stop = (): void => void (clock.seconds += (performance.now() - began) / 1000);
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
});
