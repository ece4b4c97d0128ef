import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from "node:crypto";
import type { TlsIdentity } from "../src/security/tls-identity.ts";

// The subset of X.509 (RFC 5280) needed for test certificates, in DER: tag, length, contents.
const der = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
  const contents = Buffer.concat(parts);
  const { length } = contents;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), contents]);
};
const sequence = (...parts: readonly Uint8Array[]): Buffer => der(0x30, ...parts);
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, "hex"));
const text = (tag: number, value: string): Buffer => der(tag, Buffer.from(value));

const ecdsaWithSha256 = sequence(oid("2a8648ce3d040302"));
const commonName = (name: string): Buffer => sequence(der(0x31, sequence(oid("550403"), text(0x0c, name))));
const extension = (id: string, critical: boolean, value: Uint8Array): Buffer =>
  sequence(oid(id), ...(critical ? [der(0x01, Buffer.from([0xff]))] : []), der(0x04, value));
const utcTime = (date: Date): Buffer => text(0x17, `${date.toISOString().replace(/[-:T]/g, "").slice(2, 14)}Z`);

const day = 86_400_000;

interface Request {
  readonly days: number;
  readonly subject: string;
  readonly issuer: string;
  readonly publicKey: KeyObject;
  readonly issuerKey: KeyObject;
  readonly extensions: readonly Buffer[];
}

const certificate = ({ subject, issuer, publicKey, issuerKey, extensions, days }: Request): string => {
  const serial = Buffer.concat([Buffer.from([1]), randomBytes(8)]);
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), // version 3
    der(0x02, serial),
    ecdsaWithSha256,
    commonName(issuer),
    sequence(utcTime(new Date(Date.now() - day)), utcTime(new Date(Date.now() + days * day))),
    commonName(subject),
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(...extensions)),
  );
  const whole = sequence(body, ecdsaWithSha256, der(0x03, Buffer.from([0]), sign("sha256", body, issuerKey)));
  return pem("CERTIFICATE", whole);
};

/** Contents of a certificate revocation list. Omitted fields get valid values. */
export interface RevocationListOptions {
  readonly number?: number | undefined;
  readonly thisUpdate?: Date;
  readonly nextUpdate?: Date;
  /** Additional extensions of the list. */
  readonly extensions?: readonly Buffer[];
}

/** Signs certificates for tests. */
export interface Authority {
  /**
   * Issues a certificate with a new key and the given URIs.
   *
   * @param days validity in days, starting yesterday. Default: 1.
   */
  issue(uris: readonly string[], days?: number): TlsIdentity;
  /** Returns a revocation list that contains the given certificates. */
  revoke(certificates: readonly string[], options?: RevocationListOptions): string;
}

/** A critical extension that is unknown to every reader. */
export const strangeExtension: Buffer = extension("551d1c", true, sequence());

const pem = (label: string, bytes: Buffer): string =>
  `-----BEGIN ${label}-----\n${bytes.toString("base64").replace(/.{1,64}/g, "$&\n")}-----END ${label}-----\n`;

interface ListRequest extends RevocationListOptions {
  readonly issuer: string;
  readonly issuerKey: KeyObject;
  readonly serials: readonly string[];
}

const list = ({ issuer, issuerKey, serials, number, thisUpdate, nextUpdate, extensions = [] }: ListRequest): string => {
  const entries = serials.map((serial) => sequence(der(0x02, Buffer.from(serial, "hex")), utcTime(new Date())));
  const numbered = number === undefined ? [] : [extension("551d14", false, der(0x02, Buffer.from([number])))];
  const body = sequence(
    der(0x02, Buffer.from([1])), // version 2
    ecdsaWithSha256,
    commonName(issuer),
    utcTime(thisUpdate ?? new Date(Date.now() - day)),
    utcTime(nextUpdate ?? new Date(Date.now() + day)),
    ...(entries.length === 0 ? [] : [sequence(...entries)]),
    der(0xa0, sequence(...numbered, ...extensions)),
  );
  return pem("X509 CRL", sequence(body, ecdsaWithSha256, der(0x03, Buffer.from([0]), sign("sha256", body, issuerKey))));
};

/** Creates a certificate authority with a new key. Two authorities do not trust each other. */
export const makeAuthority = (): Authority => {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const name = `test authority ${createHash("sha256")
    .update(publicKey.export({ type: "spki", format: "der" }))
    .digest("hex")
    .slice(0, 8)}`;
  const constraints = extension("551d13", true, sequence(der(0x01, Buffer.from([0xff]))));
  const keyUsage = extension("551d0f", true, der(0x03, Buffer.from([1, 0x06]))); // key usage: signing of certificates and revocation lists
  const root = certificate({
    subject: name,
    issuer: name,
    publicKey,
    issuerKey: privateKey,
    extensions: [constraints, keyUsage],
    days: 1,
  });
  return {
    revoke: (certificates, options = {}) =>
      list({
        issuer: name,
        issuerKey: privateKey,
        serials: certificates.map((text) => new X509Certificate(text).serialNumber),
        number: 1,
        ...options,
      }),
    issue: (uris, days = 1) => {
      const own = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const names = extension("551d11", false, sequence(...uris.map((uri) => text(0x86, uri))));
      return {
        certificate: certificate({
          subject: "rank",
          issuer: name,
          publicKey: own.publicKey,
          issuerKey: privateKey,
          extensions: [names],
          days,
        }),
        key: own.privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
        authority: root,
      };
    },
  };
};
