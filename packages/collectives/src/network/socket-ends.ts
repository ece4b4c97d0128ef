import type { Socket } from "node:net";

const endOf = (address: string | undefined, port: number | undefined): string =>
  `${address?.replace(/^::ffff:(?=\d+\.)/, "") ?? "unknown"}:${port ?? 0}`;

/** Address and port of this end of a connection. */
export const localEnd = ({ localAddress, localPort }: Socket): string => endOf(localAddress, localPort);

/** Address and port of its other end, or of what stands between. */
export const remoteEnd = ({ remoteAddress, remotePort }: Socket): string => endOf(remoteAddress, remotePort);
