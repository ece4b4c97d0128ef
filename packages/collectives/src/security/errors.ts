import { SkeinError } from "@skein/tensor-core";

/** A listener or dialer would use an unencrypted connection beyond this machine, and `insecure` is not set. */
export class InsecureError extends SkeinError {
  override name = "InsecureError";

  constructor(message: string) {
    super("user", "insecure", message);
  }
}

/**
 * This process's own certificate or key cannot be used: unreadable, expired, revoked, of another authority, or for
 * another role.
 */
export class CertificateError extends SkeinError {
  override name = "CertificateError";

  constructor(message: string, options?: ErrorOptions) {
    super("user", "certificate", message, options);
  }
}

/** A peer's certificate does not prove the claimed identity, or a peer refused this process's certificate. */
export class PeerIdentityError extends SkeinError {
  override name = "PeerIdentityError";

  constructor(message: string, options?: ErrorOptions) {
    super("user", "peer-identity", message, options);
  }
}

/** A peer's certificate was revoked; its sender may have stolen it. */
export class RevokedPeerError extends PeerIdentityError {
  override name = "RevokedPeerError";
}
