import { X509Certificate, createPrivateKey } from "node:crypto";
import type { Stats } from "node:fs";
import { type ConnectionOptions, checkServerIdentity, type TlsOptions } from "node:tls";
import { identityOf, provesWhat } from "./certificate-names.ts";
import { CertificateError, PeerIdentityError } from "./errors.ts";
import { readTextFile } from "./read-text-file.ts";

/** What a process proves itself with, as PEM text, and the authority that it trusts. */
export interface TlsIdentity {
  readonly certificate: string;
  readonly key: string;
  readonly authority: string;
}

/** Paths of the three PEM files of an identity. */
export type TlsFiles = { readonly [Part in keyof TlsIdentity]: string };

/** A chain of certificates takes a few thousand bytes. */
const mostPemBytes = 2 ** 20;

/**
 * Who else may read a key, in words; nobody where the file is ours alone, or where it belongs to root, who then may let one group read it:
 * so are keys mounted that Kubernetes keeps (fsGroup), and those that an administrator gives a service. PostgreSQL asks the same.
 */
export const othersWhoRead = ({ uid, mode }: Pick<Stats, "uid" | "mode">, ownUid: number): string | undefined => {
  if (uid !== 0 && uid !== ownUid) return `user ${uid}, whose file it is`;
  const refused = uid === 0 ? 0o037 : 0o077;
  return (mode & refused) === 0 ? undefined : `others, as its mode is ${(mode & 0o777).toString(8).padStart(4, "0")}`;
};

const readPem = (path: string, label: RegExp, what: "certificate" | "private key"): string => {
  let text: string;
  let stats: Stats;
  try {
    ({ text, stats } = readTextFile(path, mostPemBytes));
  } catch (error) {
    throw new CertificateError(
      `${what} ${path} cannot be read (${(error as Error).message}); make certificates with skein-train certs init`,
      {
        cause: error,
      },
    );
  }
  const ownUid = process.geteuid?.(); // Windows has none, and other ways to keep files
  const others = what === "private key" && ownUid !== undefined ? othersWhoRead(stats, ownUid) : undefined;
  if (others !== undefined)
    throw new CertificateError(
      `private key ${path} can be read by ${others}; a key is its owner's alone: chmod 600 ${path}, and make it anew if others may have read it`,
    );
  if (!label.test(text)) throw new CertificateError(`${path} holds no ${what} in PEM form; make certificates with skein-train certs init`);
  return text;
};

const parse = (text: string, what: string): X509Certificate => {
  try {
    return new X509Certificate(text);
  } catch (error) {
    throw new CertificateError(`the ${what} is damaged; make certificates anew with skein-train certs init`, { cause: error });
  }
};

/**
 * Read the PEM files of an identity, and see that they belong together and are valid now: a fault is told here, in one line, rather
 * than by a peer's alert.
 *
 * @throws CertificateError when a file cannot be read, or a key by others, the key is another's, the authority has not signed, or the time is past or to come.
 */
export const readTlsIdentity = (files: TlsFiles): TlsIdentity => {
  const identity = {
    certificate: readPem(files.certificate, /-----BEGIN CERTIFICATE-----/, "certificate"),
    key: readPem(files.key, /-----BEGIN (EC |RSA )?PRIVATE KEY-----/, "private key"),
    authority: readPem(files.authority, /-----BEGIN CERTIFICATE-----/, "certificate"),
  };
  const [certificate, authority] = [
    parse(identity.certificate, `certificate ${files.certificate}`),
    parse(identity.authority, `certificate ${files.authority}`),
  ];
  const now = Date.now();
  for (const [path, { validFrom, validTo }] of [
    [files.certificate, certificate],
    [files.authority, authority],
  ] as const) {
    if (now < Date.parse(validFrom) || now > Date.parse(validTo))
      throw new CertificateError(
        `certificate ${path} is valid from ${validFrom} to ${validTo}, and now it is ${new Date(now).toUTCString()}; make new ones with skein-train certs init, or set the clock`,
      );
  }
  let belongs: boolean;
  try {
    belongs = certificate.checkPrivateKey(createPrivateKey(identity.key));
  } catch (error) {
    throw new CertificateError(`private key ${files.key} is damaged or encrypted; give it in plain PEM form`, { cause: error });
  }
  if (!belongs)
    throw new CertificateError(`key ${files.key} is not the key of certificate ${files.certificate}; name the two that were made together`);
  // A file with several certificates brings the chain itself; TLS follows it.
  const chained = identity.certificate.split("-----BEGIN CERTIFICATE-----").length > 2;
  if (!chained && !(certificate.checkIssued(authority) && certificate.verify(authority.publicKey)))
    throw new CertificateError(
      `certificate ${files.certificate} was not signed by ${files.authority}; use the files of one skein-train certs init together`,
    );
  return identity;
};

/** Options for `tls.createServer`: TLS 1.3, and peers must prove themselves by the same authority. */
export const tlsServerOptions = ({ certificate, key, authority }: TlsIdentity): TlsOptions => ({
  cert: certificate,
  key,
  ca: authority,
  minVersion: "TLSv1.3",
  requestCert: true,
  rejectUnauthorized: true,
});

/**
 * Options for `tls.connect`: TLS 1.3, our own certificate shown, and the peer's must come from the same authority and prove that it is
 * `expected`. Where it names hosts, the host dialled must be among them; one without host names is good on any host, as the issuer chose.
 */
export const tlsClientOptions = (
  { certificate, key, authority }: TlsIdentity,
  expected: "coordinator" | { readonly rank: number },
): ConnectionOptions => ({
  cert: certificate,
  key,
  ca: authority,
  minVersion: "TLSv1.3",
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
