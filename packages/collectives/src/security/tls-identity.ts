import { type ConnectionOptions, checkServerIdentity, type TlsOptions } from "node:tls";
import { identityOf, provesWhat } from "./certificate-names.ts";
import { PeerIdentityError } from "./errors.ts";

/** Paths of the PEM files of an identity. */
export interface TlsFiles {
  readonly certificate: string;
  readonly key: string;
  readonly authority: string;
  /** List of revoked certificates, signed by the authority. The file need not exist. */
  readonly revoked?: string;
}

/** Certificate and key of a process, and the authority that it trusts, as PEM text. */
export interface TlsIdentity {
  readonly certificate: string;
  readonly key: string;
  readonly authority: string;
  /** List of certificates that the authority has revoked, as PEM text. Absent: no certificate is revoked. */
  readonly revoked?: string;
  /**
   * Files from which the identity was read. Later connections use the current contents of the files. Absent: the
   * identity never changes.
   */
  readonly files?: TlsFiles;
}

/**
 * Cipher suites in order of preference. The cipher limits the throughput of a link, because it runs on one core at each
 * end. `openssl speed` measured 3.06, 2.61 and 2.07 GB/s for blocks of 16 KiB, on one EPYC core with AES instructions.
 * Both AES key sizes are secure for the number of bytes of a session.
 */
const ciphers = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

/** Returns options for `tls.createServer`: TLS 1.3, with client certificates of the same authority. */
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
 * Returns options for `tls.connect`: TLS 1.3 with this process's certificate. The peer's certificate must be issued by
 * the same authority and prove the `expected` identity. If the certificate names hosts, the dialed host must be one of
 * them; a certificate without host names is valid on any host, by choice of the issuer.
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
          `the certificate of the peer at ${host} is for other hosts (${peer.subjectaltname}); create certificates with --hosts naming ${host}`,
          { cause: mismatch },
        );
  },
});
