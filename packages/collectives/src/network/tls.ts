import type { Socket } from "node:net";
import { type ConnectionOptions, connect, createServer, type TLSSocket } from "node:tls";
import { identityOf, provesWhat } from "../security/certificate-names.ts";
import { RenewableIdentity, type RenewalOptions } from "../security/renewable-identity.ts";
import { isCertificateFault } from "../security/tls-fault.ts";
import { type TlsIdentity, tlsClientOptions, tlsServerOptions } from "../security/tls-identity.ts";
import type { SocketFactory } from "./socket-factory.ts";
import { type LinkListener, listenForLinks } from "./link-listener.ts";
import { linkDefaults, type LinkOptions } from "./link-options.ts";
import { remoteEnd } from "./socket-ends.ts";

const overTls = (identity: RenewableIdentity, handshakeTimeout: number): SocketFactory => ({
  encrypted: true,
  serve: (accept, fault) => {
    const server = createServer(
      { ...tlsServerOptions(identity.current()), handshakeTimeout, noDelay: true },
      (socket) => {
        const remote = remoteEnd(socket);
        identity.guard(socket, (error) => {
          fault(error, remote);
          socket.destroy(error);
        });
        if (socket.destroyed)
          socket.on("error", () => undefined); // The error was already reported.
        else accept(socket);
      },
    );
    identity.renew(server);
    server.on("tlsClientError", (error: Error, socket: Socket) => fault(error, remoteEnd(socket)));
    return server;
  },
  dial: (host, port, rank, onread) => {
    // The type declarations lack `onread`, which Node accepts here as for any socket.
    const socket = connect({
      ...tlsClientOptions(identity.current(), { rank }),
      host,
      port,
      onread,
    } as ConnectionOptions);
    socket.once("secureConnect", () => identity.guard(socket, (error) => socket.destroy(error)));
    return socket;
  },
  ready: "secureConnect",
  refuse: (socket, rank) => {
    const proven = identityOf((socket as TLSSocket).getPeerCertificate().subjectaltname);
    return proven.ranks.includes(rank)
      ? undefined
      : `its certificate proves ${provesWhat(proven)}, not to be rank ${rank}; give each process its own certificate`;
  },
  isIdentityError: isCertificateFault,
  close: () => identity.close(),
});

export interface TlsLinkOptions extends LinkOptions, RenewalOptions {
  readonly tls: TlsIdentity;
}

/**
 * Listens for the peers of a rank by TLS 1.3. Both ends prove their ranks by certificates of one authority. If the
 * identity was read from files, later connections use the current contents of the files, and a peer whose certificate
 * is revoked is cut off.
 *
 * By default, checksums cover only headers, because TLS protects the payload.
 */
export const listenByTls = ({ reloadMilliseconds, onNote, ...options }: TlsLinkOptions): Promise<LinkListener> =>
  listenForLinks(
    overTls(
      new RenewableIdentity(options.tls, {
        ...(reloadMilliseconds !== undefined && { reloadMilliseconds }),
        ...(onNote && { onNote }),
      }),
      options.handshakeMilliseconds ?? linkDefaults.handshakeMilliseconds,
    ),
    options,
  );
