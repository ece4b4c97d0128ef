import { readSync, writeSync } from "node:fs";
import { type BlockingCommunicator, joinWorld as joinAnyWorld } from "./communicator.ts";
import type { WorldConnection } from "./control-block/world-connection.ts";
import type { LaneTransports } from "./lanes/rank-lanes.ts";
import { hasOwnCore } from "./own-core.ts";
import type { ExpressRuntime } from "./express/express-connection.ts";

/** Socket calls by file descriptor, available only in Node. */
export const nodeRuntime: ExpressRuntime = {
  read: (fd, target) => readSync(fd, target, 0, target.byteLength, null),
  write: (fd, bytes, begin, count) => writeSync(fd, bytes, begin, count),
  hasOwnCore: ({ preference, rank }) => hasOwnCore(preference, rank, 1),
};

/**
 * Joins a world as the rank of `connection`, like `joinWorld` of `@skein/collectives`. In addition, this thread
 * executes small requests between processes of one machine.
 *
 * @throws the errors of `joinWorld` of `@skein/collectives`.
 */
export const joinWorld = (connection: WorldConnection, laneTransports?: LaneTransports): BlockingCommunicator =>
  joinAnyWorld(connection, laneTransports, nodeRuntime);
