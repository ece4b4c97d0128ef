import "reflect-metadata"; // first: @peculiar/x509 finds its parts through it
import { isIP } from "node:net";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type JsonGeneralNames,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";
import { coordinatorUri, rankUri } from "@skein/collectives/node";
import { ConfigError } from "../errors.ts";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const clockToleranceMilliseconds = 5 * 60_000; // a certificate is to be valid at once on a machine whose clock is late
const dayMilliseconds = 86_400_000;

/** What signs certificates. Its key lives in this process only. */
export interface Authority {
  readonly certificate: X509Certificate;
  readonly keys: CryptoKeyPair;
  readonly days: number;
}

/** A certificate and its private key, as PEM text. */
export interface IssuedCertificate {
  readonly certificate: string;
  readonly key: string;
}

export interface IssueOptions {
  readonly role: "rank" | "coordinator";
  /** Ranks that it speaks for, where it is for a rank: all that are threads of one process. */
  readonly ranks?: readonly number[];
  /** Names and addresses under which it is reached; none: on any host. */
  readonly hosts: readonly string[];
}

const newKeys = (): Promise<CryptoKeyPair> => crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);

/** 127 random bits: positive, and never twice. RFC 5280 §4.1.2.2. */
const newSerial = (): string => {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[0]! &= 0x7f;
  return Buffer.from(bytes).toString("hex");
};

const validity = (days: number): { readonly notBefore: Date; readonly notAfter: Date } => {
  const now = Date.now();
  return { notBefore: new Date(now - clockToleranceMilliseconds), notAfter: new Date(now + days * dayMilliseconds) };
};

/** Make an authority: a self-signed certificate (ECDSA P-256) that may sign ranks and coordinators, and no other authority. */
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
  return { certificate, keys, days };
};

const hostNames = (hosts: readonly string[]): JsonGeneralNames =>
  hosts.map((host) => {
    if (isIP(host) !== 0) return { type: "ip", value: host };
    if (!/^(\*\.)?[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i.test(host) || host.length > 253)
      throw new ConfigError([
        `--hosts ${host}: is no name or address of a host; write it as in node-1.cluster, *.job.default.svc or 10.0.0.1`,
      ]);
    return { type: "dns", value: host };
  });

/**
 * Issue a certificate to a rank's process or to the coordinator. What it proves stands in its URIs, `skein:rank:<n>` or
 * `skein:coordinator`; it serves both ends of a connection.
 */
export const issueCertificate = async (authority: Authority, { role, ranks = [], hosts }: IssueOptions): Promise<IssuedCertificate> => {
  const keys = await newKeys();
  const uris = role === "coordinator" ? [coordinatorUri] : ranks.map(rankUri);
  const certificate = await X509CertificateGenerator.create({
    serialNumber: newSerial(),
    subject: [{ CN: [role === "coordinator" ? "skein coordinator" : `skein rank ${ranks.join(" ")}`.slice(0, 64)] }],
    issuer: authority.certificate.subjectName,
    ...validity(authority.days),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey: authority.keys.privateKey,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
      new SubjectAlternativeNameExtension([...uris.map((value) => ({ type: "url" as const, value })), ...hostNames(hosts)]),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
      await AuthorityKeyIdentifierExtension.create(authority.keys.publicKey),
    ],
  });
  const key = Buffer.from(await crypto.subtle.exportKey("pkcs8", keys.privateKey)).toString("base64");
  return {
    certificate: `${certificate.toString("pem")}\n`,
    key: `-----BEGIN PRIVATE KEY-----\n${key.match(/.{1,64}/g)!.join("\n")}\n-----END PRIVATE KEY-----\n`,
  };
};
