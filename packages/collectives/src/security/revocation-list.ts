import { verify, type X509Certificate } from "node:crypto";
import { DerReader, derTags } from "./der.ts";

/** List of revoked certificates, signed by the authority that issued them (a CRL of RFC 5280 §5). */
export interface RevocationList {
  /** PEM text, for TLS. */
  readonly text: string;
  /** Serial numbers of revoked certificates, in the format of Node's `serialNumber`. */
  readonly serials: ReadonlySet<string>;
  /** CRL number, which the authority increments; undefined if the list has no number. */
  readonly number: bigint | undefined;
  /** Time of issue in milliseconds since 1970. */
  readonly thisUpdate: number;
  /** End of validity in milliseconds since 1970. */
  readonly nextUpdate: number;
}

// Hash function of each signature algorithm, by object identifier in hexadecimal; undefined if the algorithm includes
// the hash function.
const signatures: Readonly<Record<string, string | undefined>> = {
  "2a8648ce3d040302": "sha256", // ECDSA
  "2a8648ce3d040303": "sha384",
  "2a8648ce3d040304": "sha512",
  "2a864886f70d01010b": "sha256", // RSA, PKCS #1
  "2a864886f70d01010c": "sha384",
  "2a864886f70d01010d": "sha512",
  "2b6570": undefined, // Ed25519
};
const crlNumber = "551d14";
/** Critical extensions that are allowed because they do not change the meaning of the list. */
const understood: ReadonlySet<string> = new Set([crlNumber, "551d23" /* key of the authority */]);

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

/** Normalizes a serial number for comparison: uppercase hexadecimal without leading zeros. */
export const serialOf = (hexadecimal: string): string => hexadecimal.toUpperCase().replace(/^0+(?=.)/, "");

const timeOf = (reader: DerReader): number => {
  const { tag, contents } = reader.next(derTags.utcTime, derTags.generalizedTime);
  const text = Buffer.from(contents).toString("latin1");
  const match = (
    tag === derTags.utcTime ? /^(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/ : /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/
  ).exec(text);
  if (match === null) throw new Error(`${JSON.stringify(text)} is not a time`);
  const [year, ...rest] = match.slice(1).map(Number) as [number, number, number, number, number, number];
  // RFC 5280 §4.1.2.5.1: two-digit years from 50 are in the 20th century.
  const full = tag === derTags.generalizedTime ? year : year < 50 ? 2000 + year : 1900 + year;
  return Date.UTC(full, rest[0] - 1, rest[1], rest[2], rest[3], rest[4]);
};

/**
 * Parses extensions, and returns their values by object identifier (hexadecimal).
 *
 * @throws Error if a critical extension is unknown, because the extension could change the meaning of the list.
 */
const extensionsOf = (reader: DerReader): ReadonlyMap<string, Uint8Array> => {
  const found = new Map<string, Uint8Array>();
  while (!reader.ended) {
    const extension = reader.enter(derTags.sequence);
    const id = hex(extension.next(derTags.objectIdentifier).contents);
    const critical = extension.tag === derTags.boolean && extension.next().contents[0] !== 0;
    if (critical && !understood.has(id)) throw new Error(`it has a critical extension (${id}) that is not supported`);
    found.set(id, extension.next(derTags.octetString).contents);
  }
  return found;
};

const entryOf = (reader: DerReader): string => {
  const serial = hex(reader.next(derTags.integer).contents);
  timeOf(reader);
  if (!reader.ended) extensionsOf(reader.enter(derTags.sequence));
  return serialOf(serial);
};

/** Returns the name of a certificate's subject, in DER. */
const subjectOf = (certificate: X509Certificate): Uint8Array => {
  const body = new DerReader(certificate.raw).enter(derTags.sequence).enter(derTags.sequence);
  if (body.tag === derTags.context(0)) body.next(); // Version.
  for (let skipped = 0; skipped < 4; skipped++) body.next(); // Serial number, signature algorithm, issuer, validity.
  return body.next(derTags.sequence).whole;
};

/**
 * Parses a revocation list in PEM format.
 *
 * @throws Error with a short reason why the list cannot be used: it is not a revocation list, not issued by the
 * authority, or not valid now.
 */
export const parseRevocationList = (
  text: string,
  authority: X509Certificate,
  now: number = Date.now(),
): RevocationList => {
  const blocks = [...text.matchAll(/-----BEGIN X509 CRL-----([A-Za-z0-9+/=\s]*)-----END X509 CRL-----/g)];
  if (blocks.length !== 1)
    throw new Error(`it holds ${blocks.length} lists of revoked certificates in PEM form instead of one`);
  const outer = new DerReader(Buffer.from(blocks[0]![1]!, "base64"));
  const list = outer.enter(derTags.sequence);
  const body = list.next(derTags.sequence);
  const algorithm = hex(list.enter(derTags.sequence).next(derTags.objectIdentifier).contents);
  const signature = list.next(derTags.bitString).contents;
  if (!outer.ended || !list.ended) throw new Error("there are bytes after the list");

  const fields = new DerReader(body.contents);
  if (fields.tag === derTags.integer) fields.next();
  const inner = hex(fields.enter(derTags.sequence).next(derTags.objectIdentifier).contents);
  const issuer = fields.next(derTags.sequence).whole;
  const thisUpdate = timeOf(fields);
  const isTime = fields.tag === derTags.utcTime || fields.tag === derTags.generalizedTime;
  const nextUpdate = isTime ? timeOf(fields) : Infinity;
  const serials = new Set<string>();
  if (fields.tag === derTags.sequence)
    for (const entries = fields.enter(); !entries.ended; ) serials.add(entryOf(entries.enter(derTags.sequence)));
  const extensions = fields.ended ? undefined : extensionsOf(fields.enter(derTags.context(0)).enter(derTags.sequence));
  if (!fields.ended) throw new Error("there are bytes after its extensions");

  if (!(algorithm in signatures) || algorithm !== inner)
    throw new Error(`it is signed by an unsupported algorithm (${algorithm})`);
  if (signature[0] !== 0 || !verify(signatures[algorithm], body.whole, authority.publicKey, signature.subarray(1)))
    throw new Error("it was not signed by the authority");
  if (Buffer.compare(issuer, subjectOf(authority)) !== 0) throw new Error("it names another authority");
  if (now < thisUpdate || now > nextUpdate)
    throw new Error(
      `it is valid from ${new Date(thisUpdate).toUTCString()} to ${Number.isFinite(nextUpdate) ? new Date(nextUpdate).toUTCString() : "ever"}, and now it is ${new Date(now).toUTCString()}`,
    );
  const numbered = extensions?.get(crlNumber);
  const number =
    numbered === undefined ? undefined : BigInt(`0x${hex(new DerReader(numbered).next(derTags.integer).contents)}`);
  return { text, serials, number, thisUpdate, nextUpdate };
};

/** Whether `list` was issued before `other`. */
export const isOlder = (list: RevocationList, other: RevocationList): boolean =>
  list.number !== undefined && other.number !== undefined
    ? list.number < other.number
    : list.thisUpdate < other.thisUpdate;
