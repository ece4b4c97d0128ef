import { ArgumentError, bytesPerElement, type CollectiveHandle, type CollectiveRequest, type Communicator } from "@skein/tensor-core";
import { reducible } from "../arithmetic.ts";
import { kinds, tagOf, type ThreadConnection } from "./control.ts";
import { covers, RankQueue } from "./rank-queue.ts";

/** `Communicator` of a rank that is a thread; `wait` blocks. */
export interface ThreadCommunicator extends Communicator {
  wait(handle: CollectiveHandle): void;
}

const check = (request: CollectiveRequest, { rank, worldSize, memory }: ThreadConnection): void => {
  const { kind, dtype, input, output } = request;
  const say = (rule: string): never => {
    throw new ArgumentError(`${kind}: ${rule}`);
  };
  if (!kinds.includes(kind)) say(`is not a collective; it is one of ${kinds.join(", ")}`);
  for (const bytes of [input, output]) {
    // A memory that has grown has a new `buffer` over the same bytes, so identity alone would refuse good regions.
    const inside =
      bytes.buffer === memory.buffer || (bytes.buffer instanceof SharedArrayBuffer && bytes.buffer.byteLength < memory.buffer.byteLength);
    if (bytes.byteLength > 0 && !inside)
      say(
        `a region of ${bytes.byteLength} bytes lies outside the world's WebAssembly memory; allocate it there, so that peers can read it in place`,
      );
    if (bytes.byteLength % bytesPerElement[dtype] !== 0) say(`${bytes.byteLength} bytes are not a whole number of ${dtype} elements`);
  }
  const [factor, divisor] = kind === "all-gather" ? [worldSize, 1] : kind === "reduce-scatter" ? [1, worldSize] : [1, 1];
  if (input.byteLength * factor !== output.byteLength * divisor) {
    say(
      `an input of ${input.byteLength} bytes does not fit an output of ${output.byteLength} on ${worldSize} ranks; see the table at CollectiveRequest`,
    );
  }
  if (kind === "all-to-all" && input.byteLength % (worldSize * bytesPerElement[dtype]) !== 0)
    say(`${input.byteLength} bytes cannot be split into ${worldSize} equal chunks of ${dtype}; pad the input`);
  if ((kind === "all-reduce" || kind === "reduce-scatter") && !reducible.has(dtype))
    say(`dtype ${dtype} cannot be reduced, it takes ${[...reducible].join(", ")}; cast it first`);
  for (const [name, peer] of Object.entries({ root: request.root, to: request.to, from: request.from })) {
    if (peer !== undefined && !(Number.isInteger(peer) && peer >= 0 && peer < worldSize))
      say(`${name} ${peer} is not a rank; use 0 to ${worldSize - 1}`);
  }
  if (kind === "send-receive" && (request.to === rank) !== (request.from === rank))
    say(`rank ${rank} sends to ${request.to} and receives from ${request.from}; a message to oneself needs both`);
  const apart = input.byteOffset + input.byteLength <= output.byteOffset || output.byteOffset + output.byteLength <= input.byteOffset;
  const same = input.byteOffset === output.byteOffset && input.byteLength === output.byteLength;
  if (!apart && !(same && (kind === "all-reduce" || kind === "broadcast")))
    say("input and output overlap; only all-reduce and broadcast may work in place, on one and the same region");
};

/**
 * Join a world of threads as the rank that `connection` names. Call in the rank's compute thread; the companion thread, started by
 * the world, carries requests out meanwhile. `wait` lends a hand: when the companion has not begun, the waiting thread does
 * the work itself, which saves waking another thread.
 *
 * Regions must lie in the world's memory. `start` costs a few stores and a wake-up.
 */
export const joinThreadWorld = (connection: ThreadConnection): ThreadCommunicator => {
  const queue = new RankQueue(connection);
  const tagAt = (id: number): number => id << 3;
  return {
    rank: connection.rank,
    worldSize: connection.worldSize,
    start: (request) => {
      check(request, connection);
      queue.control.throwIfUnusable(tagOf((queue.posted + 1) | 0, request.kind));
      return { id: queue.post(request) };
    },
    wait: ({ id }) => {
      // The count that is compared must be the one that is waited on: a second look could see the companion's last request done,
      // find it still at the lock, and sleep for a change that never comes.
      for (let { done } = queue; !covers(done, id); done = queue.done) {
        queue.control.throwIfUnusable(tagAt(id));
        if (queue.tryLock()) {
          try {
            while (!covers(queue.done, id)) queue.runNext();
          } finally {
            queue.unlock();
          }
        } else queue.waitWhileDone(done, tagAt(id));
      }
    },
    bytesSent: () => queue.bytesSent(),
  };
};
