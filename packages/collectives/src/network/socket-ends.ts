import type { Socket } from "node:net";

const endOf = (address: string | undefined, port: number | undefined): string =>
  `${address?.replace(/^::ffff:(?=\d+\.)/, "") ?? "unknown"}:${port ?? 0}`;

/** Address and port of the local end of a connection. */
export const localEnd = ({ localAddress, localPort }: Socket): string => endOf(localAddress, localPort);

/** Address and port of the other end of a connection, or of a proxy. */
export const remoteEnd = ({ remoteAddress, remotePort }: Socket): string => endOf(remoteAddress, remotePort);
