import { ConfigError } from "@skein/cli/node";
import "reflect-metadata"; // must come first: @peculiar/x509 needs it to find its parts
import { isIP } from "node:net";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type JsonGeneralNames,
  type JsonName,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";
import { coordinatorUri, rankUri } from "@skein/collectives/node";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
/**
 * Tolerance for slow clocks of other hosts, in milliseconds. The validity of a certificate begins this long before the
 * certificate is issued.
 */
export const clockToleranceMilliseconds: number = 5 * 60_000;
const dayMilliseconds = 86_400_000;

/** A certificate authority, which signs certificates. */
export interface Authority {
  readonly certificate: X509Certificate;
  readonly keys: CryptoKeyPair;
}

/** A certificate and its private key, as PEM text. */
export interface IssuedCertificate {
  readonly certificate: string;
  readonly key: string;
}

export interface IssueOptions {
  /** Validity in days. Infinity: valid at all times, independent of clocks. */
  readonly days: number;
  readonly role: "rank" | "coordinator";
  /** Ranks that the certificate identifies, for the role `rank`: all ranks that run as threads of one process. */
  readonly ranks?: readonly number[];
  /** Host names and addresses of the certificate's host. Empty: valid on any host. */
  readonly hosts: readonly string[];
}

/** Algorithm of keys and signatures: ECDSA on P-256. */
export const signingAlgorithm: typeof algorithm = algorithm;

const newKeys = (): Promise<CryptoKeyPair> => crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);

/** Returns a random serial number of 127 bits, which is positive and unique. RFC 5280 §4.1.2.2. */
const newSerial = (): string => {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[0]! &= 0x7f;
  return Buffer.from(bytes).toString("hex");
};

/**
 * Validity period of certificates that exist only in memory during a run, so that clock changes do not invalidate these
 * certificates. Source: RFC 5280.
 */
const allTimes = { notBefore: new Date("1970-01-01T00:00:00Z"), notAfter: new Date("9999-12-31T23:59:59Z") } as const;

const validity = (days: number): { readonly notBefore: Date; readonly notAfter: Date } => {
  if (days === Infinity) return allTimes;
  const now = Date.now();
  return { notBefore: new Date(now - clockToleranceMilliseconds), notAfter: new Date(now + days * dayMilliseconds) };
};

/**
 * Creates an authority: a self-signed certificate (ECDSA P-256) that may sign certificates of ranks and coordinators,
 * but not of other authorities.
 */
export const makeAuthority = async (name: string, days: number): Promise<Authority> => {
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: newSerial(),
    name: [{ CN: [name] }],
    ...validity(days),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate, keys };
};

const hostNames = (hosts: readonly string[]): JsonGeneralNames =>
  hosts.map((host) => {
    if (isIP(host) !== 0) return { type: "ip", value: host };
    if (
      !/^(\*\.)?[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i.test(host) ||
      host.length > 253
    )
      throw new ConfigError([
        `--hosts ${host}: is not a host name or address; use a form such as node-1.cluster, *.job.default.svc or 10.0.0.1`,
      ]);
    return { type: "dns", value: host };
  });

/**
 * Issues a certificate to a rank's process or to the coordinator. The certificate's URIs contain the identity,
 * `skein:rank:<n>` or `skein:coordinator`. A process can use the certificate both as client and as server.
 */
export const issueCertificate = (
  authority: Authority,
  { role, ranks = [], hosts, days }: IssueOptions,
): Promise<IssuedCertificate> => {
  const uris = role === "coordinator" ? [coordinatorUri] : ranks.map(rankUri);
  return sign(
    authority,
    [{ CN: [role === "coordinator" ? "skein coordinator" : `skein rank ${ranks.join(" ")}`.slice(0, 64)] }],
    new SubjectAlternativeNameExtension([
      ...uris.map((value) => ({ type: "url" as const, value })),
      ...hostNames(hosts),
    ]),
    days,
  );
};

/** Issues a certificate with a new key for the identity and hosts of the certificate `before`. */
export const reissueCertificate = (
  authority: Authority,
  before: X509Certificate,
  days: number,
): Promise<IssuedCertificate> => {
  const names = before.getExtension(SubjectAlternativeNameExtension);
  if (names === null)
    throw new ConfigError(["a certificate without names cannot be renewed; create a new folder with certs init"]);
  return sign(authority, before.subjectName.toJSON(), names, days);
};

const sign = async (
  authority: Authority,
  subject: JsonName,
  names: SubjectAlternativeNameExtension,
  days: number,
): Promise<IssuedCertificate> => {
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.create({
    serialNumber: newSerial(),
    subject,
    issuer: authority.certificate.subjectName,
    ...validity(days),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey: authority.keys.privateKey,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
      names,
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
      await AuthorityKeyIdentifierExtension.create(authority.keys.publicKey),
    ],
  });
  return { certificate: `${certificate.toString("pem")}\n`, key: await pemOfKey(keys.privateKey) };
};

/** Encodes a private key as PEM text. */
export const pemOfKey = async (key: CryptoKey): Promise<string> =>
  pem("PRIVATE KEY", Buffer.from(await crypto.subtle.exportKey("pkcs8", key)));

/** Encodes bytes as PEM text. */
export const pem = (label: string, bytes: Uint8Array): string => {
  const lines = Buffer.from(bytes)
    .toString("base64")
    .match(/.{1,64}/g)!;
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
};
