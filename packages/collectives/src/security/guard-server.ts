import type { Server, Socket } from "node:net";
import { sourceOf, type Unproven, type UnprovenConnections } from "./unproven-connections.ts";

const endOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

/**
 * Give each connection of `server` a place among those that have not proven themselves, from its first moment: under
 * TLS before the two have agreed on anything. The place is free when the connection is over, or when its owner says
 * that it has proven itself.
 *
 * Call it before any other listens for connections.
 * @returns finds the place of a socket. TLS hands out another socket than the one that came; both have the same ends.
 */
export const guardServer = (
  server: Server,
  places: UnprovenConnections,
): ((socket: Socket) => Unproven | undefined) => {
  const held = new Map<string, Unproven>();
  server.prependListener("connection", (socket: Socket) => {
    const end = endOf(socket);
    const place = places.enter(sourceOf(socket.remoteAddress), () => socket.destroy());
    held.set(end, place);
    socket.once("close", () => {
      place.leave();
      if (held.get(end) === place) held.delete(end); // else another connection has the same ends by now
    });
  });
  return (socket) => held.get(endOf(socket));
};
