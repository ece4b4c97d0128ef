import type { Socket } from "node:net";
import { type ConnectionOptions, connect, createServer, type TLSSocket } from "node:tls";
import { identityOf, provesWhat } from "../security/certificate-names.ts";
import { isCertificateFault } from "../security/tls-fault.ts";
import { type TlsIdentity, tlsClientOptions, tlsServerOptions } from "../security/tls-identity.ts";
import type { Carrier } from "./carrier.ts";
import { type LinkListener, listenForLinks } from "./link-listener.ts";
import { linkDefaults, type LinkOptions } from "./link-options.ts";

const overTls = (identity: TlsIdentity, handshakeTimeout: number): Carrier => ({
  encrypted: true,
  serve: (accept, fault) => {
    const server = createServer({ ...tlsServerOptions(identity), handshakeTimeout, noDelay: true }, accept);
    server.on("tlsClientError", (error: Error, socket: Socket) =>
      fault(error, `${socket.remoteAddress ?? "unknown"}:${socket.remotePort ?? 0}`),
    );
    return server;
  },
  dial: (host, port, rank, onread) =>
    // The types leave `onread` out, which Node takes here as for any socket.
    connect({ ...tlsClientOptions(identity, { rank }), host, port, onread } as ConnectionOptions),
  ready: "secureConnect",
  refuse: (socket, rank) => {
    const proven = identityOf((socket as TLSSocket).getPeerCertificate().subjectaltname);
    return proven.ranks.includes(rank)
      ? undefined
      : `its certificate proves ${provesWhat(proven)}, not to be rank ${rank}; give each process its own certificate`;
  },
  isIdentityError: isCertificateFault,
});

/**
 * Listen for the peers of a rank by TLS 1.3. Both ends prove by certificates of one authority which rank they are.
 *
 * Checksums cover headers alone by default: TLS protects the payload.
 */
export const listenByTls = (options: LinkOptions & { readonly tls: TlsIdentity }): Promise<LinkListener> =>
  listenForLinks(overTls(options.tls, options.handshakeMilliseconds ?? linkDefaults.handshakeMilliseconds), options);
