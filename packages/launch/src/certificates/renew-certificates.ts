import { X509Certificate } from "node:crypto";
import { readdirSync } from "node:fs";
import { ConfigError, nodeFiles, replaceDurably } from "@skein/cli/node";
import { parseCertificate, readPem, type TlsFiles } from "@skein/collectives/node";
import { type KeptAuthority, recordOf, replaceKey, withAuthority } from "./authority-file.ts";
import { coordinatorFiles, rankFiles } from "./certificate-folder.ts";

interface RenewOptions {
  /** Path of the file with the authority's key. */
  readonly authority: string;
  readonly folder: string;
  /**
   * Ranks whose certificates are renewed. If `ranks` and `coordinator` are both absent: all certificates in the folder.
   */
  readonly ranks?: readonly number[] | undefined;
  readonly coordinator?: boolean | undefined;
  readonly days: number;
}

const dayMilliseconds = 86_400_000;

/** Returns the ranks that have a certificate in a folder, in ascending order. */
const ranksIn = (folder: string): number[] => {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch (error) {
    throw new ConfigError([
      `--certificates ${folder}: cannot be read (${(error as Error).message}); name the folder that certs init wrote`,
    ]);
  }
  return names
    .flatMap((name) => /^rank-(\d+)\.pem$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
};

/** Requires that the certificates in a folder were signed by this authority. @throws ConfigError. */
export const checkFolderAuthority = (folder: string, authority: KeptAuthority, path: string): void => {
  const { authority: file } = coordinatorFiles(folder);
  const found = parseCertificate(readPem(file, "certificate"), file);
  if (found.fingerprint256 !== new X509Certificate(authority.text).fingerprint256)
    throw new ConfigError([
      `--certificates ${folder}: ${file} is of a different authority than --authority ${path}; name the folder and the authority of the same certs init`,
    ]);
};

/**
 * Replaces keys and certificates by new keys and certificates, signed by the same authority for the same ranks and
 * hosts. Old certificates stay valid until they expire, unless they are revoked.
 *
 * Each file is replaced atomically. A process that reads a new key and an old certificate detects the mismatch, and
 * reads both files again.
 * @returns the written paths, and the expiry time of the new certificates.
 * @throws ConfigError or CertificateError before any file is replaced.
 */
export const renewCertificates = ({
  authority: path,
  folder,
  ranks,
  coordinator,
  days,
}: RenewOptions): Promise<{ readonly files: string[]; readonly validTo: Date }> =>
  withAuthority(path, async (authority, save) => {
    checkFolderAuthority(folder, authority, path);
    checkLife(authority.certificate.notAfter, days, path);
    const all = ranks === undefined && coordinator !== true;
    const targets = [
      ...(all || coordinator === true ? [coordinatorFiles(folder)] : []),
      ...(all ? ranksIn(folder) : (ranks ?? [])).map((rank) => rankFiles(folder, rank)),
    ];
    const { reissueCertificate } = await import("./issue-certificate.ts");
    const { X509Certificate: Certificate } = await import("@peculiar/x509");
    const renewed: { readonly files: TlsFiles; readonly certificate: string; readonly key: string }[] = [];
    for (const files of targets) {
      const before = readPem(files.certificate, "certificate");
      const parsed = parseCertificate(before, files.certificate);
      if (!parsed.verify(new X509Certificate(authority.text).publicKey))
        throw new ConfigError([
          `${files.certificate} is not of --authority ${path}, so it was not renewed; name the folder of that authority`,
        ]);
      renewed.push({ files, ...(await reissueCertificate(authority, new Certificate(before), days)) });
    }
    const records = renewed.map(({ certificate }) => recordOf(certificate));
    // Removes records of expired certificates. Records of revoked certificates are preserved for the revocation list.
    const unexpired = authority.issued.filter(
      ({ validTo, revokedAt }) => revokedAt !== undefined || validTo.getTime() > Date.now() - dayMilliseconds,
    );
    save([...unexpired, ...records], authority.listNumber);
    for (const { files, certificate, key } of renewed) {
      replaceKey(files.key, key);
      replaceDurably(nodeFiles, files.certificate, certificate);
    }
    return {
      files: renewed.flatMap(({ files }) => [files.certificate, files.key]),
      validTo: records[0]?.validTo ?? new Date(Date.now() + days * dayMilliseconds),
    };
  });

/** Requires that new certificates expire before the authority. @throws ConfigError. */
const checkLife = (end: Date, days: number, path: string): void => {
  const left = Math.floor((end.getTime() - Date.now()) / dayMilliseconds);
  if (days <= left) return;
  const cure =
    left < 1
      ? "create a new authority and all certificates with skein-train certs init, and start the run again with them: it continues from its last checkpoint"
      : `use --days ${left} at most, and plan for a new authority (skein-train certs init), which needs a restart of the run`;
  throw new ConfigError([
    `--authority ${path}: expires on ${end.toISOString().slice(0, 10)}, before certificates of ${days} days would; ${cure}`,
  ]);
};
