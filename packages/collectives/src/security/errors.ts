import { SkeinError } from "@skein/tensor-core";

/** A listener or a dialler that would speak in the clear beyond this machine without having been told to. */
export class InsecureError extends SkeinError {
  override name = "InsecureError";

  constructor(message: string) {
    super("user", "insecure", message);
  }
}

/**
 * A certificate or key of our own that cannot be used: unreadable, expired, revoked, of another authority, or for
 * another role.
 */
export class CertificateError extends SkeinError {
  override name = "CertificateError";

  constructor(message: string, options?: ErrorOptions) {
    super("user", "certificate", message, options);
  }
}

/** A peer whose certificate does not prove what it claims to be, or a peer that refused ours. */
export class PeerIdentityError extends SkeinError {
  override name = "PeerIdentityError";

  constructor(message: string, options?: ErrorOptions) {
    super("user", "peer-identity", message, options);
  }
}

/** A peer whose certificate was revoked: who shows it may have stolen it. */
export class RevokedPeerError extends PeerIdentityError {
  override name = "RevokedPeerError";
}
