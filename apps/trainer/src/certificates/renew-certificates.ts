import { X509Certificate } from "node:crypto";
import { readdirSync } from "node:fs";
import { parseCertificate, readPem, type TlsFiles } from "@skein/collectives/node";
import { ConfigError } from "../errors.ts";
import { nodeFiles, replaceDurably } from "../files/files.ts";
import { type KeptAuthority, recordOf, replaceKey, withAuthority } from "./authority-file.ts";
import { coordinatorFiles, rankFiles } from "./certificate-folder.ts";

interface RenewOptions {
  /** File of the authority. */
  readonly authority: string;
  readonly folder: string;
  /** Whose files; all that are in the folder where neither is said. */
  readonly ranks?: readonly number[] | undefined;
  readonly coordinator?: boolean | undefined;
  readonly days: number;
}

const dayMilliseconds = 86_400_000;

/** Ranks with a certificate in a folder, ascending. */
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

/** @throws ConfigError when the folder's certificates are of another authority than `authority`. */
export const checkFolderAuthority = (folder: string, authority: KeptAuthority, path: string): void => {
  const { authority: file } = coordinatorFiles(folder);
  const found = parseCertificate(readPem(file, "certificate"), file);
  if (found.fingerprint256 !== new X509Certificate(authority.text).fingerprint256)
    throw new ConfigError([
      `--certificates ${folder}: ${file} is of another authority than --authority ${path}; name the two of one certs init`,
    ]);
};

/**
 * Issue new keys and certificates for the same ranks and hosts, by the same authority, in the place of the old. The old
 * stay valid until their end, unless they are revoked.
 *
 * Each file is replaced whole; who reads key and certificate between the two replacements sees that they do not belong
 * together, and reads again.
 * @returns the paths written, and until when the new certificates are valid.
 * @throws ConfigError or CertificateError, and then nothing is replaced.
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
    const places = [
      ...(all || coordinator === true ? [coordinatorFiles(folder)] : []),
      ...(all ? ranksIn(folder) : (ranks ?? [])).map((rank) => rankFiles(folder, rank)),
    ];
    const { reissueCertificate } = await import("./issue-certificate.ts");
    const { X509Certificate: Certificate } = await import("@peculiar/x509");
    const renewed: { readonly files: TlsFiles; readonly certificate: string; readonly key: string }[] = [];
    for (const files of places) {
      const before = readPem(files.certificate, "certificate");
      const parsed = parseCertificate(before, files.certificate);
      if (!parsed.verify(new X509Certificate(authority.text).publicKey))
        throw new ConfigError([
          `${files.certificate} is not of --authority ${path}, so it is left as it is; name the folder of that authority`,
        ]);
      renewed.push({ files, ...(await reissueCertificate(authority, new Certificate(before), days)) });
    }
    const records = renewed.map(({ certificate }) => recordOf(certificate));
    // Who has ended proves nothing any more, unless it is on the list, where it stays.
    const living = authority.issued.filter(
      ({ validTo, revokedAt }) => revokedAt !== undefined || validTo.getTime() > Date.now() - dayMilliseconds,
    );
    save([...living, ...records], authority.listNumber);
    for (const { files, certificate, key } of renewed) {
      replaceKey(files.key, key);
      replaceDurably(nodeFiles, files.certificate, certificate);
    }
    return {
      files: renewed.flatMap(({ files }) => [files.certificate, files.key]),
      validTo: records[0]?.validTo ?? new Date(Date.now() + days * dayMilliseconds),
    };
  });

/** @throws ConfigError when an authority ends before a certificate of so many days would. */
const checkLife = (end: Date, days: number, path: string): void => {
  const left = Math.floor((end.getTime() - Date.now()) / dayMilliseconds);
  if (days <= left) return;
  const cure =
    left < 1
      ? "make a new authority and all certificates with skein-train certs init, and start the run again with them: it goes on from its last checkpoint"
      : `take --days ${left} at most, and plan for a new authority (skein-train certs init), with which the run has to be started again`;
  throw new ConfigError([
    `--authority ${path}: ends on ${end.toISOString().slice(0, 10)}, before certificates of ${days} days would; ${cure}`,
  ]);
};
