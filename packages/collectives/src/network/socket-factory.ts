import type { Server, Socket } from "node:net";
import type { ReadInto } from "./frame-socket.ts";

/** Creates the sockets for links, over TCP or TLS. */
export interface SocketFactory {
  /** Whether data are protected against reading and modification in transit. */
  readonly encrypted: boolean;
  /**
   * Creates a server that does not listen yet. `accept` is called with each socket that is ready for bytes, `fault`
   * with the error of each failed connection.
   */
  serve(accept: (socket: Socket) => void, fault: (error: Error, remote: string) => void): Server;
  /** Starts to connect to the listener of a rank. */
  dial(host: string, port: number, rank: number, readInto: ReadInto): Socket;
  /** Event emitted when a dialed socket is ready for bytes. */
  readonly ready: "connect" | "secureConnect";
  /**
   * Returns the reason why the certificate of an accepted socket is not valid for `rank`; undefined if the certificate
   * is valid, or if sockets have no certificates.
   */
  refuse(socket: Socket, rank: number): string | undefined;
  /**
   * Whether an error of a dialed socket means that the peer refuses this rank's identity, or that the peer's identity
   * is invalid.
   */
  isIdentityError(error: Error): boolean;
  /** Closes the factory. Called when no more sockets will be created. */
  close(): void;
}
