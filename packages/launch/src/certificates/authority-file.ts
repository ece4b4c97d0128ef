import { createPrivateKey, X509Certificate } from "node:crypto";
import { closeSync, openSync, realpathSync, rmSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { ConfigError, nodeFiles } from "@skein/cli/node";
import { parseCertificate, readPem, serialOf } from "@skein/collectives/node";
import type { Authority } from "./issue-certificate.ts";

/** Record of a certificate that an authority has signed. */
export interface IssuedRecord {
  /** Serial number of the certificate, formatted like Node's `serialNumber`. */
  readonly serial: string;
  readonly validTo: Date;
  /** Identities in the certificate, such as `skein:rank:3` or `skein:coordinator`. */
  readonly uris: readonly string[];
  /** Time of revocation. Absent: not revoked. */
  readonly revokedAt?: Date | undefined;
}

/**
 * An authority with records of all certificates that it signed, as saved in a file. With the records, all certificates
 * on a stolen host can be revoked.
 */
export interface KeptAuthority extends Authority {
  /** The authority's certificate as PEM text, as stored in the certificate folders of hosts. */
  readonly text: string;
  readonly issued: readonly IssuedRecord[];
  /** Number of the newest revocation list; 0: no list was created. */
  readonly listNumber: bigint;
}

/** Returns the record of a PEM certificate. */
export const recordOf = (certificate: string): IssuedRecord => {
  const { serialNumber, validToDate, subjectAltName } = new X509Certificate(certificate);
  const uris = (subjectAltName ?? "")
    .split(", ")
    .flatMap((name) => (name.startsWith("URI:skein:") ? [name.slice(4)] : []));
  return { serial: serialOf(serialNumber), validTo: validToDate, uris };
};

/**
 * Maximum size of an authority file in bytes. A record has about a hundred bytes, so the limit allows 4096 ranks whose
 * certificates are renewed dozens of times.
 */
const maxAuthorityBytes = 64 * 2 ** 20;

/** Formats an authority file: key, certificate, and one line per signed certificate. */
export const authorityText = (
  key: string,
  certificate: string,
  issued: readonly IssuedRecord[],
  listNumber: bigint,
): string => {
  const lines = issued.map(
    ({ serial, validTo, uris, revokedAt }) =>
      `issued ${serial} ${validTo.toISOString()} ${uris.join(",")}${revokedAt === undefined ? "" : ` revoked ${revokedAt.toISOString()}`}`,
  );
  return [key.trimEnd(), certificate.trimEnd(), `list ${listNumber}`, ...lines, ""].join("\n");
};

const recordLine = /^issued ([0-9A-F]+) (\S+) (skein:[a-z0-9:,]*)(?: revoked (\S+))?$/;

/** Parses the lines outside the PEM blocks of an authority file. @throws ConfigError if a line is unknown. */
const recordsOf = (text: string, path: string): Pick<KeptAuthority, "issued" | "listNumber"> => {
  const issued: IssuedRecord[] = [];
  let listNumber: bigint | undefined;
  for (const line of text.replace(/-----BEGIN ([A-Z ]+)-----[\s\S]*?-----END \1-----/g, "").split("\n")) {
    if (line.trim() === "") continue;
    const [, serial, validTo, uris, revokedAt] = recordLine.exec(line) ?? [];
    const times = [validTo, revokedAt].map((time) => (time === undefined ? undefined : new Date(time)));
    if (/^list \d+$/.test(line)) listNumber = BigInt(line.slice(5));
    else if (serial === undefined || times.some((time) => time !== undefined && Number.isNaN(time.getTime())))
      throw new ConfigError([
        `--authority ${path}: has a line that skein-train certs did not write (${line.slice(0, 60)}); restore the file from a copy`,
      ]);
    else issued.push({ serial: serialOf(serial), validTo: times[0]!, uris: uris!.split(","), revokedAt: times[1] });
  }
  if (listNumber === undefined)
    throw new ConfigError([
      `--authority ${path}: is truncated, so the record of signed certificates is incomplete; restore the file from a copy`,
    ]);
  return { issued, listNumber };
};

/**
 * Reads an authority file. @throws CertificateError or ConfigError if the file is invalid, or readable by other users.
 */
const readAuthority = async (path: string): Promise<KeptAuthority & { readonly key: string }> => {
  const text = readPem(path, "private key", maxAuthorityBytes);
  const block = (label: string): string =>
    new RegExp(`-----BEGIN ${label}-----[\\s\\S]*?-----END ${label}-----`).exec(text)?.[0] ?? "";
  const [key, certificateText] = [`${block("PRIVATE KEY")}\n`, `${block("CERTIFICATE")}\n`];
  const parsed = parseCertificate(certificateText, path);
  const privateKey = createPrivateKey(key);
  if (!parsed.ca || !parsed.checkPrivateKey(privateKey))
    throw new ConfigError([
      `--authority ${path}: key and certificate do not belong to the same authority; use the file that certs init --keep-authority wrote`,
    ]);
  const { signingAlgorithm } = await import("./issue-certificate.ts");
  const { X509Certificate: Certificate } = await import("@peculiar/x509");
  const keys = {
    privateKey: await crypto.subtle.importKey(
      "pkcs8",
      privateKey.export({ type: "pkcs8", format: "der" }),
      signingAlgorithm,
      true,
      ["sign"],
    ),
    publicKey: await crypto.subtle.importKey(
      "spki",
      parsed.publicKey.export({ type: "spki", format: "der" }),
      signingAlgorithm,
      true,
      ["verify"],
    ),
  };
  return { certificate: new Certificate(certificateText), keys, text: certificateText, key, ...recordsOf(text, path) };
};

/**
 * Runs `change` with exclusive access to a saved authority. `change` receives `save`, which records signed and revoked
 * certificates. Call `save` before handing out a signed certificate, so that every certificate is recorded.
 *
 * @throws ConfigError while another command uses the authority.
 */
export const withAuthority = async <Result>(
  path: string,
  change: (
    authority: KeptAuthority,
    save: (issued: readonly IssuedRecord[], listNumber: bigint) => void,
  ) => Promise<Result>,
): Promise<Result> => {
  const lock = `${path}.lock`;
  await readAuthority(path); // reports faults of the file; the lock would only report a missing folder
  try {
    closeSync(openSync(lock, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    throw new ConfigError([
      `--authority ${path}: another skein-train certs command is using it; wait until that command ends, or remove ${lock} if no such command runs`,
    ]);
  }
  try {
    const authority = await readAuthority(path);
    return await change(authority, (issued, listNumber) =>
      replaceKey(path, authorityText(authority.key, authority.text, issued, listNumber)),
    );
  } finally {
    rmSync(lock, { force: true });
  }
};

/** Replaces a key file atomically. The key is readable only by its owner at all times. */
export const replaceKey = (path: string, text: string): void => {
  const temporary = `${path}.new`;
  rmSync(temporary, { force: true }); // writing to an existing file would keep its mode
  closeSync(openSync(temporary, "wx", 0o600));
  nodeFiles.writeDurably(temporary, [new TextEncoder().encode(text)]);
  nodeFiles.rename(temporary, path);
  nodeFiles.syncFolder(dirname(resolve(path)));
};

/** Resolves symbolic links in the folders of a path. The path need not exist. */
const realPath = (path: string): string => {
  const absolute = resolve(path);
  try {
    return realpathSync(absolute);
  } catch {
    const above = dirname(absolute);
    return above === absolute ? absolute : join(realPath(above), basename(absolute));
  }
};

/** Requires that the authority's key file is outside the certificate folder of hosts. @throws ConfigError. */
export const checkAuthorityPath = (path: string, folder: string): void => {
  const relativePath = relative(realPath(folder), realPath(path));
  if (relativePath !== ".." && !relativePath.startsWith(`..${sep}`) && !isAbsolute(relativePath))
    throw new ConfigError([
      `--keep-authority ${path}: is in ${folder}, which is copied to the hosts; anyone with this file can act as any rank, so name a file elsewhere`,
    ]);
};
