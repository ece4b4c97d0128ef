import { readSync, writeSync } from "node:fs";
import { type BlockingCommunicator, createCommunicator } from "./communicator.ts";
import type { WorldConnection } from "./control-block/world-connection.ts";
import type { LaneTransports } from "./lanes/rank-lanes.ts";
import { hasOwnCore } from "./own-core.ts";
import type { ExpressRuntime } from "./express/express-connection.ts";

/** Socket functions that take a file descriptor. Available only in Node. */
export const nodeRuntime: ExpressRuntime = {
  read: (fd, target) => readSync(fd, target, 0, target.byteLength, null),
  write: (fd, bytes, begin, count) => writeSync(fd, bytes, begin, count),
  hasOwnCore: ({ preference, rank }) => hasOwnCore(preference, rank, 1),
};

/**
 * Joins a world as the rank of `connection`, like `createCommunicator`. In addition, this thread executes small
 * requests between processes of one machine.
 *
 * @throws the errors of `createCommunicator` of `@skein/collectives`.
 * @example
 * ```ts
 * const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
 * const world = createThreadWorld({ worldSize: 2, memory, kernels: "none" });
 * const vectors = [0, 1].map((rank) => new Float32Array(memory.buffer, 64 * rank, 2).fill(rank + 1));
 * const started = vectors.map((vector, rank) => {
 *   const communicator = joinWorld(world.connection(rank)); // usually each rank in its own thread
 *   const bytes = new Uint8Array(memory.buffer, vector.byteOffset, vector.byteLength);
 *   const handle = communicator.start({ kind: "all-reduce", dtype: "f32", input: bytes, output: bytes });
 *   return { communicator, handle };
 * });
 * for (const { communicator, handle } of started) communicator.wait(handle);
 * console.log(vectors.map((vector) => [...vector])); // [[3, 3], [3, 3]]
 * await world.close();
 * ```
 */
export const joinWorld = (connection: WorldConnection, laneTransports?: LaneTransports): BlockingCommunicator =>
  createCommunicator(connection, laneTransports, nodeRuntime);
