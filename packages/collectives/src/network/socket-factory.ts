import type { Server, Socket } from "node:net";
import type { ReadInto } from "./frame-socket.ts";

/** What kind of sockets links are made of. */
export interface SocketFactory {
  /** Whether nobody on the way can read or change what is sent. */
  readonly encrypted: boolean;
  /**
   * Make a server, which does not listen yet. `accept` gets each socket that is ready for bytes, `fault` what came of
   * the others.
   */
  serve(accept: (socket: Socket) => void, fault: (error: Error, remote: string) => void): Server;
  /** Begin to connect to the listener of a rank. */
  dial(host: string, port: number, rank: number, readInto: ReadInto): Socket;
  /** The event that tells that a dialled socket is ready for bytes. */
  readonly ready: "connect" | "secureConnect";
  /**
   * Why the certificate of an accepted socket does not let it speak for `rank`; undefined when it does, or nobody asks.
   */
  refuse(socket: Socket, rank: number): string | undefined;
  /** Whether an error on a dialled socket says that the peer refuses who we are, or is not who it should be. */
  isIdentityError(error: Error): boolean;
  /** Called when no more sockets will be made. */
  close(): void;
}
