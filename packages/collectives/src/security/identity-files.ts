import { createPrivateKey, X509Certificate } from "node:crypto";
import type { Stats } from "node:fs";
import { CertificateError } from "./errors.ts";
import { readTextFile } from "./read-text-file.ts";
import { parseRevocationList, type RevocationList, serialOf } from "./revocation-list.ts";
import type { TlsFiles, TlsIdentity } from "./tls-identity.ts";

/**
 * Describes which other users may read a key file; undefined if only this user may read the file. A file owned by root
 * may also be readable by one group, as for keys that Kubernetes mounts (fsGroup) or that an administrator provides to
 * a service. PostgreSQL has the same rule.
 */
export const otherReaders = ({ uid, mode }: Pick<Stats, "uid" | "mode">, ownUid: number): string | undefined => {
  if (uid !== 0 && uid !== ownUid) return `user ${uid}, the owner of the file`;
  const refused = uid === 0 ? 0o037 : 0o077;
  return (mode & refused) === 0 ? undefined : `others, as its mode is ${(mode & 0o777).toString(8).padStart(4, "0")}`;
};

type What = "certificate" | "private key" | "list of revoked certificates";

/**
 * Maximum file sizes in bytes. A certificate chain takes a few thousand bytes; a list of revoked certificates takes 60
 * bytes per certificate.
 */
const maxPemBytes: Readonly<Record<What, number>> = {
  certificate: 2 ** 20,
  "private key": 2 ** 20,
  "list of revoked certificates": 16 * 2 ** 20,
};

const labels: Readonly<Record<What, RegExp>> = {
  certificate: /-----BEGIN CERTIFICATE-----/,
  "private key": /-----BEGIN (EC |RSA )?PRIVATE KEY-----/,
  "list of revoked certificates": /-----BEGIN X509 CRL-----/,
};

/**
 * Reads a PEM file.
 *
 * @throws CertificateError if the file cannot be read, has other contents, or is a key that other users can read.
 */
export const readPem = (path: string, what: What, maxBytes: number = maxPemBytes[what]): string => {
  let text: string;
  let stats: Stats;
  try {
    ({ text, stats } = readTextFile(path, maxBytes));
  } catch (error) {
    throw new CertificateError(
      `${what} ${path} cannot be read (${(error as Error).message}); create certificates with skein-train certs init`,
      { cause: error },
    );
  }
  const ownUid = process.geteuid?.(); // Windows has no user ids, and protects files by other means.
  const others = what === "private key" && ownUid !== undefined ? otherReaders(stats, ownUid) : undefined;
  if (others !== undefined)
    throw new CertificateError(
      `private key ${path} can be read by ${others}; a key is its owner's alone: chmod 600 ${path}, and replace the key if others may have read it`,
    );
  if (!labels[what].test(text))
    throw new CertificateError(`${path} holds no ${what} in PEM form; create certificates with skein-train certs init`);
  return text;
};

/**
 * Parses the text of a certificate file.
 *
 * @throws CertificateError if the text of `path` is not a certificate.
 */
export const parseCertificate = (text: string, path: string): X509Certificate => {
  try {
    return new X509Certificate(text);
  } catch (error) {
    throw new CertificateError(
      `the certificate ${path} is damaged; create new certificates with skein-train certs init`,
      { cause: error },
    );
  }
};

/** Thrown if a certificate and a key do not match, as happens while both files are being replaced. */
class UnpairedError extends CertificateError {
  override name = "UnpairedError";
}

/** PEM texts of a certificate, its key and the authority. */
export type Pair = Pick<TlsIdentity, "certificate" | "key" | "authority">;

/**
 * Reads the certificate, key and authority of an identity.
 *
 * @throws CertificateError if a file cannot be read, or other users can read the key.
 */
export const readPair = (files: TlsFiles): Pair => ({
  certificate: readPem(files.certificate, "certificate"),
  key: readPem(files.key, "private key"),
  authority: readPem(files.authority, "certificate"),
});

// A file with several certificates contains the complete chain, which TLS checks.
const isChain = (certificate: string): boolean => certificate.split("-----BEGIN CERTIFICATE-----").length > 2;

/**
 * Checks that the certificate, key and authority of an identity match and are valid now, so that a problem is reported
 * here in one line, instead of by a TLS alert of a peer.
 *
 * @throws UnpairedError if the key belongs to another certificate; CertificateError if the authority has not signed the
 * certificate, or the current time is outside its validity.
 */
export const checkPair = (pair: Pair, files: TlsFiles): void => {
  const [certificate, authority] = [
    parseCertificate(pair.certificate, files.certificate),
    parseCertificate(pair.authority, files.authority),
  ];
  const now = Date.now();
  for (const [path, { validFrom, validTo }] of [
    [files.certificate, certificate],
    [files.authority, authority],
  ] as const) {
    if (now < Date.parse(validFrom) || now > Date.parse(validTo))
      throw new CertificateError(
        `certificate ${path} is valid from ${validFrom} to ${validTo}, and now it is ${new Date(now).toUTCString()}; create new ones with skein-train certs renew (or init, if the authority's key was not kept), or set the clock`,
      );
  }
  let belongs: boolean;
  try {
    belongs = certificate.checkPrivateKey(createPrivateKey(pair.key));
  } catch (error) {
    throw new CertificateError(`private key ${files.key} is damaged or encrypted; provide it in unencrypted PEM form`, {
      cause: error,
    });
  }
  if (!belongs)
    throw new UnpairedError(
      `key ${files.key} is not the key of certificate ${files.certificate}; use the two files that were created together`,
    );
  if (!isChain(pair.certificate) && !(certificate.checkIssued(authority) && certificate.verify(authority.publicKey)))
    throw new CertificateError(
      `certificate ${files.certificate} was not signed by ${files.authority}; use the files of one skein-train certs init together`,
    );
};

/**
 * Reads the list of revoked certificates. Returns undefined if there is no list.
 *
 * @throws CertificateError if the list cannot be read.
 */
export const readRevoked = ({ revoked }: TlsFiles): string | undefined => {
  if (revoked === undefined) return undefined;
  try {
    return readPem(revoked, "list of revoked certificates");
  } catch (error) {
    if (((error as Error).cause as NodeJS.ErrnoException | undefined)?.code === "ENOENT") return undefined;
    throw error;
  }
};

/**
 * Parses and checks a list of revoked certificates.
 *
 * @throws CertificateError if the list cannot be used with this certificate and authority.
 */
export const checkRevoked = (text: string, { certificate, authority }: Pair, path: string): RevocationList => {
  if (isChain(certificate))
    throw new CertificateError(
      `${path} lists revoked certificates, but this process's certificate has intermediate certificates; revocation needs certificates that the authority itself has signed`,
    );
  try {
    return parseRevocationList(text, new X509Certificate(authority));
  } catch (error) {
    throw new CertificateError(
      `the list of revoked certificates ${path} cannot be used: ${(error as Error).message}; use the list that skein-train certs revoke has written`,
      { cause: error },
    );
  }
};

// Maximum number of attempts to read a matching certificate and key. Renewing takes two renames, which take longer on
// network storage.
const pairTries = 20;
const pairRestMilliseconds = 50;

/**
 * Reads the PEM files of an identity, and checks that they match, are valid now and not revoked. Files that are being
 * replaced are read again, for at most one second.
 *
 * @throws CertificateError if a file cannot be read, other users can read the key, the key belongs to another
 * certificate, the authority has not signed the certificate, the current time is outside its validity, or the
 * certificate was revoked.
 */
export const readTlsIdentity = (files: TlsFiles): TlsIdentity => {
  const pair = readFitting(files, pairTries);
  const revoked = readRevoked(files);
  if (revoked === undefined) return { ...pair, files };
  const list = checkRevoked(revoked, pair, files.revoked!);
  if (list.serials.has(serialOf(new X509Certificate(pair.certificate).serialNumber)))
    throw new CertificateError(
      `certificate ${files.certificate} was revoked, as ${files.revoked} says; issue a new one with skein-train certs renew`,
    );
  return { ...pair, revoked, files };
};

const readFitting = (files: TlsFiles, tries: number): Pair => {
  const pair = readPair(files);
  try {
    checkPair(pair, files);
    return pair;
  } catch (error) {
    if (!(error instanceof UnpairedError) || tries <= 1) throw error;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pairRestMilliseconds);
    return readFitting(files, tries - 1);
  }
};
