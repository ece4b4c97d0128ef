import { InsecureError } from "./errors.ts";

/**
 * Whether `host` can be reached from this machine only. A name other than localhost counts as reachable from outside.
 */
export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^(::ffff:)?127(\.\d{1,3}){3}$/.test(host);

/** @throws InsecureError when `what` would speak in the clear beyond this machine and nobody has said `insecure`. */
export const requireSecure = (
  what: string,
  host: string,
  { encrypted, insecure }: { readonly encrypted: boolean; readonly insecure: boolean },
): void => {
  if (!encrypted && !insecure && !isLoopback(host))
    throw new InsecureError(
      `${what} on ${host} without TLS, which anyone between the machines can read and change; give certificates (skein-train certs init), or say insecure where the network is yours alone`,
    );
};
