import type { Socket } from "node:net";

const endOf = (address: string | undefined, port: number | undefined): string =>
  `${address?.replace(/^::ffff:(?=\d+\.)/, "") ?? "unknown"}:${port ?? 0}`;

/** Returns the address and port of the local end of a connection. */
export const localEnd = ({ localAddress, localPort }: Socket): string => endOf(localAddress, localPort);

/** Returns the address and port of the remote end of a connection, which may be a proxy. */
export const remoteEnd = ({ remoteAddress, remotePort }: Socket): string => endOf(remoteAddress, remotePort);
