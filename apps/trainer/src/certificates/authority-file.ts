import { createPrivateKey, X509Certificate } from "node:crypto";
import { closeSync, openSync, realpathSync, rmSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { parseCertificate, readPem, serialOf } from "@skein/collectives/node";
import { ConfigError } from "../errors.ts";
import { nodeFiles } from "../files/files.ts";
import type { Authority } from "./issue-certificate.ts";

/** A certificate that an authority has signed. */
export interface IssuedRecord {
  /** In the form of Node's `serialNumber`. */
  readonly serial: string;
  readonly validTo: Date;
  /** What it proves: `skein:rank:3`, `skein:coordinator`. */
  readonly uris: readonly string[];
  /** When it was revoked. */
  readonly revokedAt?: Date | undefined;
}

/**
 * An authority that was kept, and all that it has signed: by this record, everything that a stolen host may hold can be
 * revoked.
 */
export interface KeptAuthority extends Authority {
  /** Its certificate as PEM text, as it lies in the folders that were handed out. */
  readonly text: string;
  readonly issued: readonly IssuedRecord[];
  /** Of the newest list of revoked certificates; 0: there is none. */
  readonly listNumber: bigint;
}

/** What is remembered of a certificate, in PEM form. */
export const recordOf = (certificate: string): IssuedRecord => {
  const { serialNumber, validToDate, subjectAltName } = new X509Certificate(certificate);
  const uris = (subjectAltName ?? "")
    .split(", ")
    .flatMap((name) => (name.startsWith("URI:skein:") ? [name.slice(4)] : []));
  return { serial: serialOf(serialNumber), validTo: validToDate, uris };
};

/** A record takes a hundred bytes: this is room for a world of 4096 ranks, renewed dozens of times. */
const mostAuthorityBytes = 64 * 2 ** 20;

/** What is to be written into the file of an authority: key, certificate, and a line for each that it has signed. */
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

/** What stands between the blocks of PEM. @throws ConfigError at a line that nobody wrote there. */
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
        `--authority ${path}: has a line that skein-train certs has not written (${line.slice(0, 60)}); take it from a copy`,
      ]);
    else issued.push({ serial: serialOf(serial), validTo: times[0]!, uris: uris!.split(","), revokedAt: times[1] });
  }
  if (listNumber === undefined)
    throw new ConfigError([
      `--authority ${path}: is cut short, so what it has signed is not known; take it from a copy`,
    ]);
  return { issued, listNumber };
};

/** @throws CertificateError or ConfigError when the file is none, or others can read it. */
const readAuthority = async (path: string): Promise<KeptAuthority & { readonly key: string }> => {
  const text = readPem(path, "private key", mostAuthorityBytes);
  const block = (label: string): string =>
    new RegExp(`-----BEGIN ${label}-----[\\s\\S]*?-----END ${label}-----`).exec(text)?.[0] ?? "";
  const [key, certificateText] = [`${block("PRIVATE KEY")}\n`, `${block("CERTIFICATE")}\n`];
  const parsed = parseCertificate(certificateText, path);
  const privateKey = createPrivateKey(key);
  if (!parsed.ca || !parsed.checkPrivateKey(privateKey))
    throw new ConfigError([
      `--authority ${path}: key and certificate are not those of one authority; take the file that certs init --keep-authority wrote`,
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
 * Work with a kept authority, alone. `change` gets it with `save`, which writes down what it has signed and revoked;
 * call that before anything signed is given away, so that nothing is out in the world which the record does not know.
 *
 * @throws ConfigError while another command works with it.
 */
export const withAuthority = async <Result>(
  path: string,
  change: (
    authority: KeptAuthority,
    save: (issued: readonly IssuedRecord[], listNumber: bigint) => void,
  ) => Promise<Result>,
): Promise<Result> => {
  const lock = `${path}.lock`;
  await readAuthority(path); // first, for what is wrong with it: the lock would only say that there is no such folder
  try {
    closeSync(openSync(lock, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    throw new ConfigError([
      `--authority ${path}: another skein-train certs works with it; wait until it is done, or remove ${lock} where none runs`,
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

/** Replace a file with a key so that nobody ever reads half of it, and nobody else any of it. */
export const replaceKey = (path: string, text: string): void => {
  const temporary = `${path}.new`;
  rmSync(temporary, { force: true }); // its mode would stay
  closeSync(openSync(temporary, "wx", 0o600));
  nodeFiles.writeDurably(temporary, [new TextEncoder().encode(text)]);
  nodeFiles.rename(temporary, path);
  nodeFiles.syncFolder(dirname(resolve(path)));
};

/** Where a path leads once the folders on it that are links have been followed, whether it is there or not. */
const realPath = (path: string): string => {
  const absolute = resolve(path);
  try {
    return realpathSync(absolute);
  } catch {
    const above = dirname(absolute);
    return above === absolute ? absolute : join(realPath(above), basename(absolute));
  }
};

/** @throws ConfigError when the authority's key would lie in the folder that is handed out. */
export const checkAuthorityPlace = (path: string, folder: string): void => {
  const way = relative(realPath(folder), realPath(path));
  if (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way))
    throw new ConfigError([
      `--keep-authority ${path}: lies in ${folder}, which is handed out to the hosts; who has it can be any rank, so name a file elsewhere`,
    ]);
};
