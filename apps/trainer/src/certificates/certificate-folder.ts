import { closeSync, existsSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { TlsFiles, TlsIdentity } from "@skein/collectives/node";
import { ConfigError } from "../errors.ts";

/** How long certificates are valid by default: longer than a run, shorter than they are remembered. */
export const defaultDays = 30;

const filesOf = (folder: string, name: string): TlsFiles => ({
  certificate: join(folder, `${name}.pem`),
  key: join(folder, `${name}.key.pem`),
  authority: join(folder, "authority.pem"),
});

/** The coordinator's files in a folder of certificates. */
export const coordinatorFiles = (folder: string): TlsFiles => filesOf(folder, "coordinator");

/** A rank's files in a folder of certificates. A process of several ranks takes those of any of them. */
export const rankFiles = (folder: string, rank: number): TlsFiles => filesOf(folder, `rank-${rank}`);

interface CertificateWishes {
  readonly ranks: number;
  /** Ranks that are threads of one process: each certificate names all of its process. Default 1. */
  readonly ranksPerProcess?: number;
  readonly hosts: readonly string[];
  readonly days?: number;
}

/** Who is who in a run. */
interface IssuedIdentities {
  readonly coordinator: TlsIdentity;
  /** By rank. */
  readonly ranks: readonly TlsIdentity[];
}

/** Make an authority, and with it a certificate for the coordinator and for each rank. The authority's own key is not kept, so nothing can make more. */
export const issueIdentities = async ({
  ranks,
  ranksPerProcess = 1,
  hosts,
  days = defaultDays,
}: CertificateWishes): Promise<IssuedIdentities> => {
  // Loaded when it is needed: it takes 130 ms, which every start of skein-train would spend.
  const { issueCertificate, makeAuthority } = await import("./issue-certificate.ts");
  const authority = await makeAuthority("skein", days);
  const text = `${authority.certificate.toString("pem")}\n`;
  const coordinator = { ...(await issueCertificate(authority, { role: "coordinator", hosts })), authority: text };
  const identities: TlsIdentity[] = [];
  for (let rank = 0; rank < ranks; rank++) {
    const first = rank - (rank % ranksPerProcess);
    const own = Array.from({ length: Math.min(ranksPerProcess, ranks - first) }, (_, i) => first + i);
    identities.push({ ...(await issueCertificate(authority, { role: "rank", ranks: own, hosts })), authority: text });
  }
  return { coordinator, ranks: identities };
};

/**
 * Issue identities and write them into one folder; keys with mode 0600.
 *
 * @returns the paths written. @throws ConfigError when one of them exists; then nothing is written.
 */
export const writeCertificates = async ({ folder, ...wishes }: CertificateWishes & { readonly folder: string }): Promise<string[]> => {
  const { coordinator, ranks } = await issueIdentities(wishes);
  const files = [{ path: coordinatorFiles(folder).authority, text: coordinator.authority, mode: 0o644 }];
  const add = ({ certificate, key }: TlsFiles, issued: TlsIdentity): void => {
    files.push({ path: certificate, text: issued.certificate, mode: 0o644 }, { path: key, text: issued.key, mode: 0o600 });
  };
  add(coordinatorFiles(folder), coordinator);
  for (const [rank, identity] of ranks.entries()) add(rankFiles(folder, rank), identity);
  writeNew(folder, files);
  return files.map(({ path }) => path);
};

/** Write all files or none. */
const writeNew = (folder: string, files: readonly { readonly path: string; readonly text: string; readonly mode: number }[]): void => {
  const there = files.find(({ path }) => existsSync(path));
  if (there !== undefined)
    throw new ConfigError([
      `--output ${folder}: ${there.path} exists, and a key is never overwritten; name another folder, or remove the old certificates first`,
    ]);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const written: string[] = [];
  try {
    for (const { path, text, mode } of files) {
      const file = openSync(path, "wx", mode); // exclusive, so that nobody puts a link there between the look and the write
      written.push(path);
      try {
        writeSync(file, text);
      } finally {
        closeSync(file);
      }
    }
  } catch (error) {
    for (const path of written) rmSync(path, { force: true });
    throw error;
  }
};
