import { verify, type X509Certificate } from "node:crypto";
import { DerReader, derTags } from "./der.ts";

/**
 * A list of certificates that are no longer worth anything, signed by the authority that issued them (a CRL of RFC 5280
 * §5).
 */
export interface RevocationList {
  /** In PEM form, for TLS. */
  readonly text: string;
  /** Serial numbers in the form of Node's `serialNumber`. */
  readonly serials: ReadonlySet<string>;
  /** Counted up by the authority; undefined where it does not. */
  readonly number: bigint | undefined;
  /** When it was made, and until when it holds; milliseconds since 1970. */
  readonly thisUpdate: number;
  readonly nextUpdate: number;
}

// Object identifiers in hexadecimal, with the hash of each way to sign; undefined: it brings its own.
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
/** Of critical extensions, those that may be there: none changes what the list says. */
const understood: ReadonlySet<string> = new Set([crlNumber, "551d23" /* key of the authority */]);

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

/** A serial number in the one form in which they are compared: hexadecimal without leading zeros. */
export const serialOf = (hexadecimal: string): string => hexadecimal.toUpperCase().replace(/^0+(?=.)/, "");

const timeOf = (reader: DerReader): number => {
  const { tag, contents } = reader.next(derTags.utcTime, derTags.generalizedTime);
  const text = Buffer.from(contents).toString("latin1");
  const match = (
    tag === derTags.utcTime ? /^(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/ : /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/
  ).exec(text);
  if (match === null) throw new Error(`${JSON.stringify(text)} is no time`);
  const [year, ...rest] = match.slice(1).map(Number) as [number, number, number, number, number, number];
  // RFC 5280 §4.1.2.5.1: two digits from 50 on are of the last century.
  const full = tag === derTags.generalizedTime ? year : year < 50 ? 2000 + year : 1900 + year;
  return Date.UTC(full, rest[0] - 1, rest[1], rest[2], rest[3], rest[4]);
};

/**
 * What extensions say, by identifier.
 *
 * @throws Error at a critical one that is not understood: the list would mean something else.
 */
const extensionsOf = (reader: DerReader): ReadonlyMap<string, Uint8Array> => {
  const found = new Map<string, Uint8Array>();
  while (!reader.ended) {
    const extension = reader.enter(derTags.sequence);
    const id = hex(extension.next(derTags.objectIdentifier).contents);
    const critical = extension.tag === derTags.boolean && extension.next().contents[0] !== 0;
    if (critical && !understood.has(id))
      throw new Error(`it has a critical extension (${id}) that is not understood here`);
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

/** The name of a certificate's subject, as bytes. */
const subjectOf = (certificate: X509Certificate): Uint8Array => {
  const body = new DerReader(certificate.raw).enter(derTags.sequence).enter(derTags.sequence);
  if (body.tag === derTags.context(0)) body.next(); // version
  for (let skipped = 0; skipped < 4; skipped++) body.next(); // serial number, way to sign, issuer, validity
  return body.next(derTags.sequence).whole;
};

/**
 * Read a list in PEM form.
 *
 * @throws Error that says in a few words why it cannot be used: it is none, it is not the authority's, or it does not
 * hold now.
 */
export const parseRevocationList = (
  text: string,
  authority: X509Certificate,
  now: number = Date.now(),
): RevocationList => {
  const blocks = [...text.matchAll(/-----BEGIN X509 CRL-----([A-Za-z0-9+/=\s]*)-----END X509 CRL-----/g)];
  if (blocks.length !== 1)
    throw new Error(`it holds ${blocks.length} lists of revoked certificates in PEM form, and should hold one`);
  const outer = new DerReader(Buffer.from(blocks[0]![1]!, "base64"));
  const list = outer.enter(derTags.sequence);
  const body = list.next(derTags.sequence);
  const algorithm = hex(list.enter(derTags.sequence).next(derTags.objectIdentifier).contents);
  const signature = list.next(derTags.bitString).contents;
  if (!outer.ended || !list.ended) throw new Error("there is something behind the list");

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
  if (!fields.ended) throw new Error("there is something behind its extensions");

  if (!(algorithm in signatures) || algorithm !== inner)
    throw new Error(`it is signed in a way (${algorithm}) that is not known here`);
  if (signature[0] !== 0 || !verify(signatures[algorithm], body.whole, authority.publicKey, signature.subarray(1)))
    throw new Error("it was not signed by the authority");
  if (Buffer.compare(issuer, subjectOf(authority)) !== 0) throw new Error("it names another authority");
  if (now < thisUpdate || now > nextUpdate)
    throw new Error(
      `it holds from ${new Date(thisUpdate).toUTCString()} to ${Number.isFinite(nextUpdate) ? new Date(nextUpdate).toUTCString() : "ever"}, and now it is ${new Date(now).toUTCString()}`,
    );
  const numbered = extensions?.get(crlNumber);
  const number =
    numbered === undefined ? undefined : BigInt(`0x${hex(new DerReader(numbered).next(derTags.integer).contents)}`);
  return { text, serials, number, thisUpdate, nextUpdate };
};

/** Whether `list` was made before `other`. */
export const isOlder = (list: RevocationList, other: RevocationList): boolean =>
  list.number !== undefined && other.number !== undefined
    ? list.number < other.number
    : list.thisUpdate < other.thisUpdate;
