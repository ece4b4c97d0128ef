import { type ErrorKind, SkeinError } from "@skein/tensor-core";
import { CertificateError, InsecureError, PeerIdentityError, RevokedPeerError } from "../security/errors.ts";
import { WireError } from "../wire/errors.ts";
import { JoinRefusedError, JoinUnavailableError, RendezvousError } from "./errors.ts";

/** Fields of an error posted to another thread. */
export interface PostedError {
  readonly name: string;
  readonly kind: ErrorKind | undefined;
  readonly code: string | undefined;
  readonly message: string;
}

export const postedError = (error: unknown): PostedError => {
  const { name, kind, code, message } = error as PostedError;
  return { name, kind, code, message };
};

type Make = (code: never, message: string) => SkeinError;
const makers: Readonly<Record<string, Make>> = {
  CertificateError: (_, message) => new CertificateError(message),
  InsecureError: (_, message) => new InsecureError(message),
  JoinRefusedError: (code, message) => new JoinRefusedError(code, message),
  PeerIdentityError: (_, message) => new PeerIdentityError(message),
  JoinUnavailableError: (code, message) => new JoinUnavailableError(code, message),
  RevokedPeerError: (_, message) => new RevokedPeerError(message),
  RendezvousError: (code, message) => new RendezvousError(code, message),
  WireError: (code, message) => new WireError(code, message),
};

/**
 * Recreates an error that another thread has posted. The error keeps its class if the class is a rendezvous error
 * class; otherwise, it keeps only its kind and code.
 */
export const revivedError = ({ name, kind, code = "internal", message }: PostedError): Error =>
  makers[name]?.(code as never, message) ??
  (kind === undefined ? Object.assign(new Error(message), { code }) : new SkeinError(kind, code, message));
