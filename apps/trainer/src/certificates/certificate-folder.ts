import { closeSync, existsSync, openSync, rmSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import type { TlsFiles, TlsIdentity } from "@skein/collectives/node";
import { ConfigError } from "../errors.ts";
import { makeFolders, removeEmpty } from "../files/make-folders.ts";
import { explainPlace } from "../files/places.ts";
import { authorityText, checkAuthorityPlace, recordOf } from "./authority-file.ts";
import type { Authority } from "./issue-certificate.ts";

/** How long certificates are valid by default: longer than a run, shorter than they are remembered. */
export const defaultDays = 30;

/** How long an authority is valid that was kept to renew certificates. */
export const defaultAuthorityDays = 365;

const filesOf = (folder: string, name: string): Required<TlsFiles> => ({
  certificate: join(folder, `${name}.pem`),
  key: join(folder, `${name}.key.pem`),
  authority: join(folder, "authority.pem"),
  revoked: join(folder, "revoked.pem"),
});

/** The coordinator's files in a folder of certificates. */
export const coordinatorFiles = (folder: string): Required<TlsFiles> => filesOf(folder, "coordinator");

/** A rank's files in a folder of certificates. A process of several ranks takes those of any of them. */
export const rankFiles = (folder: string, rank: number): Required<TlsFiles> => filesOf(folder, `rank-${rank}`);

interface CertificateWishes {
  readonly ranks: number;
  /** Ranks that are threads of one process: each certificate names all of its process. Default 1. */
  readonly ranksPerProcess?: number;
  readonly hosts: readonly string[];
  readonly days?: number;
  /** How long the authority itself is valid. Default: as `days`. */
  readonly authorityDays?: number;
}

/** Who is who in a run. */
interface IssuedIdentities {
  readonly coordinator: TlsIdentity;
  /** By rank. */
  readonly ranks: readonly TlsIdentity[];
}

/**
 * Make an authority, and with it a certificate for the coordinator and for each rank. The authority's own key is not
 * kept, so nothing can make more, and nothing is renewed or revoked: for a run that makes its own and whose
 * certificates live in its memory, as long as it does.
 */
export const issueIdentities = async (wishes: CertificateWishes): Promise<IssuedIdentities> => {
  const { identities } = await issueWithAuthority(wishes);
  return identities;
};

const issueWithAuthority = async ({
  ranks,
  ranksPerProcess = 1,
  hosts,
  days = defaultDays,
  authorityDays = days,
}: CertificateWishes): Promise<{ readonly authority: Authority; readonly identities: IssuedIdentities }> => {
  // Loaded when it is needed: it takes 130 ms, which every start of skein-train would spend.
  const { issueCertificate, makeAuthority } = await import("./issue-certificate.ts");
  const authority = await makeAuthority("skein", authorityDays);
  const text = `${authority.certificate.toString("pem")}\n`;
  const coordinator = { ...(await issueCertificate(authority, { role: "coordinator", hosts, days })), authority: text };
  const ofRanks: TlsIdentity[] = [];
  for (let rank = 0; rank < ranks; rank++) {
    const first = rank - (rank % ranksPerProcess);
    const own = Array.from({ length: Math.min(ranksPerProcess, ranks - first) }, (_, i) => first + i);
    ofRanks.push({
      ...(await issueCertificate(authority, { role: "rank", ranks: own, hosts, days })),
      authority: text,
    });
  }
  return { authority, identities: { coordinator, ranks: ofRanks } };
};

/**
 * Issue identities and write them into one folder; keys with mode 0600.
 *
 * @param keepAuthority where to keep the authority's key, beside that folder; without it nothing can be renewed or
 * revoked.
 * @returns the paths written. @throws ConfigError when one of them exists, or the key would lie in the folder; then
 * nothing is written.
 */
export const writeCertificates = async ({
  folder,
  keepAuthority,
  ...wishes
}: CertificateWishes & { readonly folder: string; readonly keepAuthority?: string | undefined }): Promise<string[]> => {
  if (keepAuthority !== undefined) checkAuthorityPlace(keepAuthority, folder);
  const { authority, identities } = await issueWithAuthority(wishes);
  const { coordinator, ranks } = identities;
  const files = [{ path: coordinatorFiles(folder).authority, text: coordinator.authority, mode: 0o644 }];
  const add = ({ certificate, key }: TlsFiles, issued: TlsIdentity): void => {
    files.push(
      { path: certificate, text: issued.certificate, mode: 0o644 },
      { path: key, text: issued.key, mode: 0o600 },
    );
  };
  add(coordinatorFiles(folder), coordinator);
  for (const [rank, identity] of ranks.entries()) add(rankFiles(folder, rank), identity);
  if (keepAuthority !== undefined) {
    const { pemOfKey } = await import("./issue-certificate.ts");
    const issued = [coordinator, ...ranks].map(({ certificate }) => recordOf(certificate));
    const text = authorityText(await pemOfKey(authority.keys.privateKey), coordinator.authority, issued, 0n);
    files.push({ path: keepAuthority, text, mode: 0o600 });
  }
  writeNew(folder, files);
  return files.map(({ path }) => path);
};

/** Write all files or none. */
const writeNew = (
  folder: string,
  files: readonly { readonly path: string; readonly text: string; readonly mode: number }[],
): void => {
  const there = files.find(({ path }) => existsSync(path));
  if (there !== undefined)
    throw new ConfigError([
      `--output ${folder}: ${there.path} exists, and a key is never overwritten; name another place, or remove the old certificates first (certs renew replaces them)`,
    ]);
  const written: string[] = [];
  const made: string[] = [];
  try {
    for (const path of new Set([folder, ...files.map((file) => dirname(file.path))]))
      made.push(...makeFolders(path, 0o700));
    for (const { path, text, mode } of files) {
      // exclusive, so that nobody puts a link there between the look and the write
      const file = openSync(path, "wx", mode);
      written.push(path);
      try {
        writeSync(file, text);
      } finally {
        closeSync(file);
      }
    }
  } catch (error) {
    for (const path of written) rmSync(path, { force: true });
    removeEmpty(made);
    const { path = folder } = error as NodeJS.ErrnoException;
    throw explainPlace(error, path, "name another place with --output, or --keep-authority");
  }
};
