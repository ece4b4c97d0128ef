import { createPrivateKey, X509Certificate } from "node:crypto";
import type { Stats } from "node:fs";
import { CertificateError } from "./errors.ts";
import { readTextFile } from "./read-text-file.ts";
import { parseRevocationList, type RevocationList, serialOf } from "./revocation-list.ts";
import type { TlsFiles, TlsIdentity } from "./tls-identity.ts";

/**
 * Who else may read a key, in words; nobody where the file is ours alone, or where it belongs to root, who then may let
 * one group read it: so are keys mounted that Kubernetes keeps (fsGroup), and those that an administrator gives a
 * service. PostgreSQL asks the same.
 */
export const othersWhoRead = ({ uid, mode }: Pick<Stats, "uid" | "mode">, ownUid: number): string | undefined => {
  if (uid !== 0 && uid !== ownUid) return `user ${uid}, whose file it is`;
  const refused = uid === 0 ? 0o037 : 0o077;
  return (mode & refused) === 0 ? undefined : `others, as its mode is ${(mode & 0o777).toString(8).padStart(4, "0")}`;
};

type What = "certificate" | "private key" | "list of revoked certificates";

/** Maximum sizes, in bytes. A chain takes a few thousand; a list of revoked certificates 60 for each of them. */
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
 * Read a PEM file.
 *
 * @throws CertificateError when it cannot be read, holds something else, or is a key that others can read.
 */
export const readPem = (path: string, what: What, mostBytes: number = maxPemBytes[what]): string => {
  let text: string;
  let stats: Stats;
  try {
    ({ text, stats } = readTextFile(path, mostBytes));
  } catch (error) {
    throw new CertificateError(
      `${what} ${path} cannot be read (${(error as Error).message}); make certificates with skein-train certs init`,
      { cause: error },
    );
  }
  const ownUid = process.geteuid?.(); // Windows has none, and other ways to keep files
  const others = what === "private key" && ownUid !== undefined ? othersWhoRead(stats, ownUid) : undefined;
  if (others !== undefined)
    throw new CertificateError(
      `private key ${path} can be read by ${others}; a key is its owner's alone: chmod 600 ${path}, and make it anew if others may have read it`,
    );
  if (!labels[what].test(text))
    throw new CertificateError(`${path} holds no ${what} in PEM form; make certificates with skein-train certs init`);
  return text;
};

/** @throws CertificateError when the text of `path` is no certificate. */
export const parseCertificate = (text: string, path: string): X509Certificate => {
  try {
    return new X509Certificate(text);
  } catch (error) {
    throw new CertificateError(
      `the certificate ${path} is damaged; make certificates anew with skein-train certs init`,
      { cause: error },
    );
  }
};

/** A certificate and a key that are not of each other: so they are read while both are being replaced, too. */
class UnpairedError extends CertificateError {
  override name = "UnpairedError";
}

/** The texts of a certificate, its key and the authority. */
export type Pair = Pick<TlsIdentity, "certificate" | "key" | "authority">;

/** @throws CertificateError when one cannot be read, or the key by others. */
export const readPair = (files: TlsFiles): Pair => ({
  certificate: readPem(files.certificate, "certificate"),
  key: readPem(files.key, "private key"),
  authority: readPem(files.authority, "certificate"),
});

// A file with several certificates brings the chain itself; TLS follows it.
const isChain = (certificate: string): boolean => certificate.split("-----BEGIN CERTIFICATE-----").length > 2;

/**
 * See that the parts of an identity belong together and are valid now: a fault is told here, in one line, rather than
 * by a peer's alert.
 *
 * @throws UnpairedError when the key is another's; CertificateError when the authority has not signed, or the time is
 * past or to come.
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
        `certificate ${path} is valid from ${validFrom} to ${validTo}, and now it is ${new Date(now).toUTCString()}; make new ones with skein-train certs renew (or init, where the authority was not kept), or set the clock`,
      );
  }
  let belongs: boolean;
  try {
    belongs = certificate.checkPrivateKey(createPrivateKey(pair.key));
  } catch (error) {
    throw new CertificateError(`private key ${files.key} is damaged or encrypted; give it in plain PEM form`, {
      cause: error,
    });
  }
  if (!belongs)
    throw new UnpairedError(
      `key ${files.key} is not the key of certificate ${files.certificate}; name the two that were made together`,
    );
  if (!isChain(pair.certificate) && !(certificate.checkIssued(authority) && certificate.verify(authority.publicKey)))
    throw new CertificateError(
      `certificate ${files.certificate} was not signed by ${files.authority}; use the files of one skein-train certs init together`,
    );
};

/**
 * The text of the list of revoked certificates; undefined where there is none.
 *
 * @throws CertificateError when it cannot be read.
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

/** @throws CertificateError when the list cannot be used with this certificate and authority. */
export const checkRevoked = (text: string, { certificate, authority }: Pair, path: string): RevocationList => {
  if (isChain(certificate))
    throw new CertificateError(
      `${path} lists revoked certificates, but our own certificate comes with others between it and the authority; revocation needs certificates that the authority itself has signed`,
    );
  try {
    return parseRevocationList(text, new X509Certificate(authority));
  } catch (error) {
    throw new CertificateError(
      `the list of revoked certificates ${path} cannot be used: ${(error as Error).message}; take the one that skein-train certs revoke has written`,
      { cause: error },
    );
  }
};

// Renewing takes two renames, of the key and of the certificate: a moment, on network storage a longer one.
const pairTries = 20;
const pairRestMilliseconds = 50;

/**
 * Read the PEM files of an identity, and see that they belong together, are valid now and not revoked. Files that are
 * just being replaced are read again, for a second at most.
 *
 * @throws CertificateError when a file cannot be read, or a key by others, the key is another's, the authority has not
 * signed, the time is past or to come, or the certificate was revoked.
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
