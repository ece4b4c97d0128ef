import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";

const exported = 32;

/**
 * What only the two ends of this very connection know, where it is TLS: the `tls-exporter` binding of RFC 9266. Empty
 * in the clear, where there is nothing that somebody in the middle does not see.
 */
export const channelBinding = (socket: Socket): Uint8Array =>
  socket instanceof TLSSocket
    ? socket.exportKeyingMaterial(exported, "EXPORTER-Channel-Binding", Buffer.alloc(0))
    : new Uint8Array(0);
