import { InsecureError } from "./errors.ts";

/**
 * Whether `host` can be reached only from this machine. A name other than localhost counts as reachable from other
 * machines.
 *
 * @example
 * ```ts
 * console.log(isLoopback("127.0.0.1"), isLoopback("10.0.0.1")); // true false
 * ```
 */
export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^(::ffff:)?127(\.\d{1,3}){3}$/.test(host);

/**
 * Requires TLS or `insecure` for connections to other machines.
 *
 * @throws InsecureError if `what` would use an unencrypted connection to another machine and `insecure` is false.
 */
export const requireSecure = (
  what: string,
  host: string,
  { encrypted, insecure }: { readonly encrypted: boolean; readonly insecure: boolean },
): void => {
  if (!encrypted && !insecure && !isLoopback(host))
    throw new InsecureError(
      `${what} on ${host} without TLS, so anyone between the machines could read and change the data; provide certificates (skein-train certs init), or set insecure if no one else uses the network`,
    );
};
