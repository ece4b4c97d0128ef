import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";

const exported = 32;

/**
 * Returns the channel binding of a TLS connection, a value that only its two ends know: `tls-exporter` of RFC 9266.
 * Empty without TLS, because a man in the middle can read everything without TLS.
 */
export const channelBinding = (socket: Socket): Uint8Array =>
  socket instanceof TLSSocket
    ? socket.exportKeyingMaterial(exported, "EXPORTER-Channel-Binding", Buffer.alloc(0))
    : new Uint8Array(0);
