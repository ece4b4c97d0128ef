import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type Server as TlsServer, TLSSocket } from "node:tls";
import type { RevokedPeerError } from "../security/errors.ts";
import { guardServer } from "../security/guard-server.ts";
import { RenewableIdentity } from "../security/renewable-identity.ts";
import { tlsReasonOf } from "../security/tls-fault.ts";
import { tlsServerOptions } from "../security/tls-identity.ts";
import { type Unproven, UnprovenConnections } from "../security/unproven-connections.ts";
import type { CheckedRendezvousOptions } from "./coordinator-options.ts";
import type { RankAddress } from "./roster.ts";

/**
 * Maximum number of simultaneous unauthenticated connections, in addition to one connection per rank. Each further
 * connection closes an existing connection.
 */
const unauthenticatedSlots = 1024;

/** Listens for the processes of a job, by TLS if there is a TLS identity, otherwise by TCP. */
export class ControlListener {
  readonly #options: CheckedRendezvousOptions;
  readonly #server: Server;
  readonly #identity: RenewableIdentity | undefined;
  readonly #sockets = new Set<Socket>();
  #referenced = true;

  /**
   * Creates a listener that does not listen yet.
   *
   * @param receive called with each connection. Connections that TLS does not trust (`authorized` is false) are
   * included, so that the reason can be sent to the peer.
   * @param drop called with the reason for each failed connection.
   */
  constructor(
    options: CheckedRendezvousOptions,
    receive: (socket: Socket, unproven: Unproven) => void,
    drop: (reason: string) => void,
  ) {
    this.#options = options;
    const {
      security,
      reloadMilliseconds,
      handshakeTimeoutMilliseconds: handshakeTimeout,
      worldSize,
      onEvent,
    } = options;
    const identity =
      security &&
      new RenewableIdentity(security, {
        ...(reloadMilliseconds !== undefined && { reloadMilliseconds }),
        onNote: (message) => onEvent({ kind: "certificates", message }),
      });
    this.#identity = identity;
    const ready = (socket: Socket): void => {
      const slot = slotOf(socket);
      if (slot === undefined) socket.destroy();
      else receive(socket, slot);
    };
    this.#server =
      identity === undefined
        ? createServer()
        : createTlsServer(
            { ...tlsServerOptions(identity.current()), rejectUnauthorized: false, handshakeTimeout },
            ready,
          );
    identity?.renew(this.#server as TlsServer);
    this.#server.on("tlsClientError", (error: Error, socket: Socket) => {
      drop(
        `a connection from ${socket.remoteAddress ?? "an unknown address"}: no TLS handshake (${tlsReasonOf(error)})`,
      );
      socket.destroy();
    });
    const slotOf = guardServer(
      this.#server,
      new UnprovenConnections({ slots: worldSize + unauthenticatedSlots, quota: worldSize }),
    );
    this.#server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
      if (!this.#referenced) socket.unref();
      if (security === undefined) ready(socket);
    });
    this.#server.on("error", (error) => {
      if (this.#server.listening) drop(`a connection could not be accepted: ${error.message}`);
    });
  }

  /** Watches a connection trusted by TLS, and calls `cut` when the peer's certificate is revoked. */
  guard(socket: Socket, cut: (error: RevokedPeerError) => void): void {
    if (socket instanceof TLSSocket && socket.authorized) this.#identity?.guard(socket, cut);
  }

  /**
   * Starts to listen.
   *
   * @returns the listening address.
   * @throws the system's error, for example if the port is taken.
   */
  listen(): Promise<RankAddress> {
    const { host, port } = this.#options;
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject).listen({ host, port }, () => {
        this.#server.off("error", reject);
        const bound = this.#server.address() as AddressInfo;
        resolve({ host: bound.address, port: bound.port });
      });
    });
  }

  /** Allows the process to exit while this listener is open. */
  unref(): void {
    this.#referenced = false;
    this.#server.unref();
    for (const socket of this.#sockets) socket.unref();
  }

  /** Stops accepting connections, then runs `last`, then closes the remaining connections. */
  async stop(last: () => Promise<unknown>): Promise<void> {
    const stopped = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    await last();
    this.#identity?.close();
    for (const socket of this.#sockets) socket.destroy();
    await stopped;
  }
}
