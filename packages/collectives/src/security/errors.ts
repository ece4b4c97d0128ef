import { SkeinError } from "@skein/tensor-core";

/** Thrown if a listener or dialer would use an unencrypted connection to another machine, and `insecure` is not set. */
export class InsecureError extends SkeinError {
  override name = "InsecureError";

  constructor(message: string) {
    super("user", "insecure", message);
  }
}

/**
 * Thrown if the certificate or key of this process cannot be used: unreadable, expired, revoked, issued by another
 * authority, or for another role.
 */
export class CertificateError extends SkeinError {
  override name = "CertificateError";

  constructor(message: string, options?: ErrorOptions) {
    super("user", "certificate", message, options);
  }
}

/**
 * Thrown if a peer's certificate does not prove the claimed identity, or if a peer refused this process's certificate.
 */
export class PeerIdentityError extends SkeinError {
  override name = "PeerIdentityError";

  constructor(message: string, options?: ErrorOptions) {
    super("user", "peer-identity", message, options);
  }
}

/** Thrown if a peer's certificate was revoked. The peer may have stolen the certificate. */
export class RevokedPeerError extends PeerIdentityError {
  override name = "RevokedPeerError";
}
