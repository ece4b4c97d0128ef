import { type ConnectionOptions, checkServerIdentity, type TlsOptions } from "node:tls";
import { identityOf, provesWhat } from "./certificate-names.ts";
import { PeerIdentityError } from "./errors.ts";

/** Paths of the PEM files of an identity. */
export interface TlsFiles {
  readonly certificate: string;
  readonly key: string;
  readonly authority: string;
  /** List of revoked certificates, signed by the authority. It need not be there. */
  readonly revoked?: string;
}

/** What a process proves itself with, as PEM text, and the authority that it trusts. */
export interface TlsIdentity {
  readonly certificate: string;
  readonly key: string;
  readonly authority: string;
  /** Certificates that the authority has revoked. */
  readonly revoked?: string;
  /**
   * Where all this was read: what is put there later is used for later connections. Without files an identity stays as
   * it is.
   */
  readonly files?: TlsFiles;
}

/**
 * In order of preference. A link's speed is that of its cipher on one core of each end; by `openssl speed` of 16 KiB on
 * one core of an EPYC with AES instructions: 3.06, 2.61 and 2.07 GB/s. Both AES forms are sound for a session's bytes.
 */
const ciphers = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

/** Options for `tls.createServer`: TLS 1.3, and peers must prove themselves by the same authority. */
export const tlsServerOptions = ({ certificate, key, authority, revoked }: TlsIdentity): TlsOptions => ({
  cert: certificate,
  key,
  ca: authority,
  ...(revoked !== undefined && { crl: revoked }),
  minVersion: "TLSv1.3",
  ciphers,
  requestCert: true,
  rejectUnauthorized: true,
});

/**
 * Options for `tls.connect`: TLS 1.3, our own certificate shown, and the peer's must come from the same authority and
 * prove that it is `expected`. Where it names hosts, the host dialled must be among them; one without host names is
 * good on any host, as the issuer chose.
 */
export const tlsClientOptions = (
  { certificate, key, authority, revoked }: TlsIdentity,
  expected: "coordinator" | { readonly rank: number },
): ConnectionOptions => ({
  cert: certificate,
  key,
  ca: authority,
  ...(revoked !== undefined && { crl: revoked }),
  minVersion: "TLSv1.3",
  ciphers,
  rejectUnauthorized: true,
  checkServerIdentity: (host, peer) => {
    const { coordinator, ranks, namesHosts } = identityOf(peer.subjectaltname);
    const proven = expected === "coordinator" ? coordinator : ranks.includes(expected.rank);
    if (!proven)
      return new PeerIdentityError(
        `the peer at ${host} should be ${expected === "coordinator" ? "the coordinator" : `rank ${expected.rank}`}, but its certificate proves ${provesWhat({ coordinator, ranks })}; give each process its own certificate`,
      );
    const mismatch = namesHosts ? checkServerIdentity(host, peer) : undefined;
    return mismatch === undefined
      ? undefined
      : new PeerIdentityError(
          `the certificate of the peer at ${host} is for other hosts (${peer.subjectaltname}); make certificates with --hosts naming ${host}`,
          { cause: mismatch },
        );
  },
});
