import type { Server, Socket } from "node:net";
import { sourceOf, type Unproven, type UnprovenConnections } from "./unproven-connections.ts";

const endOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

/**
 * Registers each connection of `server` as unproven when it is accepted; with TLS, before the TLS handshake. A
 * connection is removed from the register when it closes, or when its owner calls `leave` after authentication.
 *
 * Call this function before other listeners for connections are added.
 * @returns a function that finds the registration of a socket. With TLS, the server emits a different socket than the
 * accepted socket, but both sockets have the same addresses and ports.
 */
export const guardServer = (
  server: Server,
  connections: UnprovenConnections,
): ((socket: Socket) => Unproven | undefined) => {
  const held = new Map<string, Unproven>();
  server.prependListener("connection", (socket: Socket) => {
    const end = endOf(socket);
    const slot = connections.enter(sourceOf(socket.remoteAddress), () => socket.destroy());
    held.set(end, slot);
    socket.once("close", () => {
      slot.leave();
      if (held.get(end) === slot) held.delete(end); // Otherwise a later connection has the same address and port.
    });
  });
  return (socket) => held.get(endOf(socket));
};
