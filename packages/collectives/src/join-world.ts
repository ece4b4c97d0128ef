import { readSync, writeSync } from "node:fs";
import { type BlockingCommunicator, joinWorld as joinAnyWorld } from "./communicator.ts";
import type { WorldConnection } from "./control-block/world-connection.ts";
import type { LaneTransports } from "./lanes/rank-lanes.ts";
import { hasOwnCore } from "./own-core.ts";
import type { ExpressMeans } from "./express/express-connection.ts";

/** Sockets by their file descriptors, which only Node has. */
export const nodeMeans: ExpressMeans = {
  read: (fd, target) => readSync(fd, target, 0, target.byteLength, null),
  write: (fd, bytes, begin, count) => writeSync(fd, bytes, begin, count),
  hasOwnCore: ({ preference, rank }) => hasOwnCore(preference, rank, 1),
};

/**
 * Join a world as the rank that `connection` names, as `joinWorld` of `@skein/collectives` does; small requests between
 * processes of one machine are carried out by this thread itself.
 *
 * @throws as that one does.
 */
export const joinWorld = (connection: WorldConnection, travel?: LaneTransports): BlockingCommunicator =>
  joinAnyWorld(connection, travel, nodeMeans);
