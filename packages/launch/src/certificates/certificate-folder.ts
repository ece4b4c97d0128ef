import { closeSync, existsSync, openSync, rmSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { ConfigError, explainPath, makeFolders, removeEmpty } from "@skein/cli/node";
import type { TlsFiles, TlsIdentity } from "@skein/collectives/node";
import { authorityText, checkAuthorityPath, recordOf } from "./authority-file.ts";
import type { Authority } from "./issue-certificate.ts";

/** Default validity of certificates in days: longer than a run, but short enough that forgotten certificates expire. */
export const defaultDays = 30;

/** Default validity, in days, of an authority that is saved to renew certificates. */
export const defaultAuthorityDays = 365;

const filesOf = (folder: string, name: string): Required<TlsFiles> => ({
  certificate: join(folder, `${name}.pem`),
  key: join(folder, `${name}.key.pem`),
  authority: join(folder, "authority.pem"),
  revoked: join(folder, "revoked.pem"),
});

/** Returns the paths of the coordinator's files in a certificate folder. */
export const coordinatorFiles = (folder: string): Required<TlsFiles> => filesOf(folder, "coordinator");

/**
 * Returns the paths of a rank's files in a certificate folder. A process with several ranks uses the files of any of
 * its ranks.
 */
export const rankFiles = (folder: string, rank: number): Required<TlsFiles> => filesOf(folder, `rank-${rank}`);

interface CertificateOptions {
  readonly ranks: number;
  /** Number of ranks per process. Each certificate names all ranks of its process. Default: 1. */
  readonly ranksPerProcess?: number;
  readonly hosts: readonly string[];
  readonly days?: number;
  /** Validity of the authority in days. Default: `days`. */
  readonly authorityDays?: number;
}

/** TLS identities of all processes of a run. */
interface IssuedIdentities {
  readonly coordinator: TlsIdentity;
  /** Identities of the ranks, indexed by rank. */
  readonly ranks: readonly TlsIdentity[];
}

/**
 * Creates an authority, and certificates for the coordinator and for each rank. The authority's key is not saved, so no
 * further certificates can be issued, renewed or revoked. Used by runs that create their certificates in memory.
 */
export const issueIdentities = async (options: CertificateOptions): Promise<IssuedIdentities> => {
  const { identities } = await issueWithAuthority(options);
  return identities;
};

const issueWithAuthority = async ({
  ranks,
  ranksPerProcess = 1,
  hosts,
  days = defaultDays,
  authorityDays = days,
}: CertificateOptions): Promise<{ readonly authority: Authority; readonly identities: IssuedIdentities }> => {
  // Imported on demand: the import takes 130 ms, which would delay every start of skein-train.
  const { issueCertificate, makeAuthority } = await import("./issue-certificate.ts");
  const authority = await makeAuthority("skein", authorityDays);
  const text = `${authority.certificate.toString("pem")}\n`;
  const coordinator = { ...(await issueCertificate(authority, { role: "coordinator", hosts, days })), authority: text };
  const rankIdentities: TlsIdentity[] = [];
  for (let rank = 0; rank < ranks; rank++) {
    const first = rank - (rank % ranksPerProcess);
    const own = Array.from({ length: Math.min(ranksPerProcess, ranks - first) }, (_, i) => first + i);
    rankIdentities.push({
      ...(await issueCertificate(authority, { role: "rank", ranks: own, hosts, days })),
      authority: text,
    });
  }
  return { authority, identities: { coordinator, ranks: rankIdentities } };
};

/**
 * Issues identities and writes them into a folder; key files have mode 0600.
 *
 * @param keepAuthority file for the authority's key, outside `folder`. Absent: certificates cannot be renewed or
 * revoked.
 * @returns the written paths.
 * @throws ConfigError if one of the paths exists, or the authority's key would be inside `folder`. In both cases
 * nothing is written.
 */
export const writeCertificates = async ({
  folder,
  keepAuthority,
  ...options
}: CertificateOptions & { readonly folder: string; readonly keepAuthority?: string | undefined }): Promise<
  string[]
> => {
  if (keepAuthority !== undefined) checkAuthorityPath(keepAuthority, folder);
  const { authority, identities } = await issueWithAuthority(options);
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

/** Writes files. If a write fails, removes the files written so far. */
const writeNew = (
  folder: string,
  files: readonly { readonly path: string; readonly text: string; readonly mode: number }[],
): void => {
  const there = files.find(({ path }) => existsSync(path));
  if (there !== undefined)
    throw new ConfigError([
      `--output ${folder}: ${there.path} exists, and a key is never overwritten; name another folder, or remove the old certificates first (certs renew replaces them)`,
    ]);
  const written: string[] = [];
  const made: string[] = [];
  try {
    for (const path of new Set([folder, ...files.map((file) => dirname(file.path))]))
      made.push(...makeFolders(path, 0o700));
    for (const { path, text, mode } of files) {
      // Opened exclusively, so that nobody can create a link at the path between the check and the write.
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
    throw explainPath(error, path, "name another folder with --output, or another file with --keep-authority");
  }
};
