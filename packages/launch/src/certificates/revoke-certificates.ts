import { X509Certificate } from "node:crypto";
import { existsSync } from "node:fs";
import { ConfigError, nodeFiles, replaceDurably } from "@skein/cli/node";
import {
  coordinatorUri,
  parseCertificate,
  parseRevocationList,
  rankUri,
  readPem,
  serialOf,
} from "@skein/collectives/node";
import { type IssuedRecord, type KeptAuthority, recordOf, withAuthority } from "./authority-file.ts";
import { coordinatorFiles } from "./certificate-folder.ts";
import { checkFolderAuthority } from "./renew-certificates.ts";

interface RevokeOptions {
  /** Path of the file with the authority's key. */
  readonly authority: string;
  /** Folder in which the revocation list is written. */
  readonly folder: string;
  /** Ranks whose certificates are revoked, including older certificates of these ranks. */
  readonly ranks?: readonly number[] | undefined;
  /** Whether to revoke all certificates of the coordinator. */
  readonly coordinator?: boolean | undefined;
  /** Paths of single certificates to revoke. */
  readonly certificates?: readonly string[] | undefined;
}

/** Result of a revocation. */
interface Revoked {
  readonly list: string;
  /** Serial numbers that this revocation added to the list. */
  readonly serials: readonly string[];
  /** Number of certificates on the list. */
  readonly count: number;
}

/**
 * Revokes certificates: adds them to the revocation list in a folder, signed by the authority. A run that reads the
 * list rejects peers that use a revoked certificate, and closes their open connections.
 *
 * @throws ConfigError if there is nothing to revoke, or a certificate is from a different authority.
 */
export const revokeCertificates = ({
  authority: path,
  folder,
  ranks = [],
  coordinator = false,
  certificates = [],
}: RevokeOptions): Promise<Revoked> =>
  withAuthority(path, async (authority, save) => {
    checkFolderAuthority(folder, authority, path);
    const { revoked: list } = coordinatorFiles(folder);
    const named = certificates.map((file) => namedIn(file, authority, path));
    const uris = new Set([...ranks.map(rankUri), ...(coordinator ? [coordinatorUri] : [])]);
    const known = new Map([...authority.issued, ...named].map((record) => [record.serial, record]));
    // The authority's record of a certificate has more fields than the certificate file.
    for (const record of authority.issued) known.set(record.serial, record);
    for (const uri of uris)
      if (![...known.values()].some((record) => record.uris.includes(uri)))
        throw new ConfigError([
          `--authority ${path}: has never signed a certificate of ${uri}; name ranks that certs init created`,
        ]);
    const selected = [...known.values()].filter(
      ({ serial, uris: own }) => named.some((one) => one.serial === serial) || own.some((uri) => uris.has(uri)),
    );
    const now = new Date();
    const added = selected.filter(({ revokedAt }) => revokedAt === undefined).map(({ serial }) => serial);
    for (const serial of added) known.set(serial, { ...known.get(serial)!, revokedAt: now });
    const before = listIn(list, authority);
    const entries = new Map(
      [...known.values()].flatMap(({ serial, revokedAt }) => (revokedAt === undefined ? [] : [[serial, revokedAt]])),
    );
    // An authority file that is older than the list lacks some revocations.
    for (const serial of before?.serials ?? []) if (!entries.has(serial)) entries.set(serial, now);
    const number = [authority.listNumber, before?.number ?? 0n].reduce((a, b) => (a > b ? a : b)) + 1n;
    const { makeRevocationList } = await import("./make-revocation-list.ts");
    const text = await makeRevocationList(authority, number, entries);
    save([...known.values()], number);
    replaceDurably(nodeFiles, list, text);
    return { list, serials: added, count: entries.size };
  });

const namedIn = (file: string, authority: KeptAuthority, path: string): IssuedRecord => {
  const certificate = parseCertificate(readPem(file, "certificate"), file);
  if (certificate.ca || !certificate.verify(new X509Certificate(authority.text).publicKey))
    throw new ConfigError([
      `--certificate ${file}: was not signed by --authority ${path}, which can revoke only its own certificates`,
    ]);
  return { ...recordOf(certificate.toString()), serial: serialOf(certificate.serialNumber) };
};

/**
 * Reads the revocation list in a folder; undefined if there is no list.
 * @throws ConfigError if the list is damaged, or was not signed by this authority.
 */
const listIn = (path: string, authority: KeptAuthority): ReturnType<typeof parseRevocationList> | undefined => {
  if (!existsSync(path)) return undefined;
  try {
    return parseRevocationList(readPem(path, "list of revoked certificates"), new X509Certificate(authority.text));
  } catch (error) {
    throw new ConfigError([
      `${path} cannot be extended: ${(error as Error).message}; repair or remove it, and revoke again`,
    ]);
  }
};
