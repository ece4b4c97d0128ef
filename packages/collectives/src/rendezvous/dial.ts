import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { PeerIdentityError, RevokedPeerError } from "../security/errors.ts";
import { isCertificateFault, isTlsFault, tlsReasonOf } from "../security/tls-fault.ts";
import { tlsClientOptions, type TlsIdentity } from "../security/tls-identity.ts";
import type { RankAddress } from "./roster.ts";

/** Error codes that are transient: the coordinator is not running yet, or its name does not resolve yet. */
const transientCodes: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "EHOSTDOWN",
  "ENETUNREACH",
  "ENETDOWN",
  "ENOTFOUND",
  "EAI_AGAIN",
]);

/** A failed attempt that may succeed if it is repeated. */
export class TransientError extends Error {}

/**
 * Connects in a single attempt, by TLS if there is a TLS identity.
 *
 * @throws TransientError, PeerIdentityError if this process or the peer refused TLS, or the system's error.
 */
export const dial = (
  address: RankAddress,
  security: TlsIdentity | undefined,
  timeoutMilliseconds: number,
): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const { host, port } = address;
    const socket =
      security === undefined
        ? connect({ host, port })
        : connectTls({
            host,
            port,
            ...(isIP(host) === 0 ? { servername: host } : {}),
            ...tlsClientOptions(security, "coordinator"),
          });
    const fail = (error: Error): void => {
      clearTimeout(late);
      socket.destroy();
      reject(error);
    };
    const late = setTimeout(
      () => fail(new TransientError(`no connection within ${Math.round(timeoutMilliseconds)} ms`)),
      timeoutMilliseconds,
    );
    const failed = (error: NodeJS.ErrnoException): void => fail(explain(error, `${host}:${port}`));
    socket.once("error", failed);
    socket.once(security === undefined ? "connect" : "secureConnect", () => {
      clearTimeout(late);
      socket.off("error", failed);
      resolve(socket);
    });
  });

/** Converts a connection error to the error that the dialing process throws. */
export const explain = (error: NodeJS.ErrnoException, where: string): Error => {
  const code = error.code ?? "";
  if (error instanceof PeerIdentityError) return error;
  if (code === "CERT_REVOKED")
    return new RevokedPeerError(
      `the certificate of the process at ${where} was revoked; start the run's host again with new files`,
    );
  if (transientCodes.has(code)) return new TransientError(`${error.syscall ?? "connection"} ${code}`, { cause: error });
  if (isTlsFault(error))
    return new TransientError(`the received bytes are not TLS, or were altered in transit: ${tlsReasonOf(error)}`, {
      cause: error,
    });
  if (isCertificateFault(error))
    return new PeerIdentityError(
      `TLS with ${where} failed (${code}: ${tlsReasonOf(error)}); use the files of one skein-train certs init on all hosts, while they are valid`,
      { cause: error },
    );
  return error;
};
