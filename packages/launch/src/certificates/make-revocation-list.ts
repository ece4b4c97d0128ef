import "reflect-metadata"; // must come first: @peculiar/x509 needs it to find its parts
import { AuthorityKeyIdentifierExtension, Extension, X509CrlGenerator, X509CrlReason } from "@peculiar/x509";
import { type Authority, clockToleranceMilliseconds, pem, signingAlgorithm } from "./issue-certificate.ts";

/** Encodes a positive integer in DER. */
const derInteger = (value: bigint): Uint8Array<ArrayBuffer> => {
  const digits = value.toString(16);
  const bytes = Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, "hex");
  const padded = bytes[0]! < 0x80 ? bytes : Buffer.concat([Buffer.from([0]), bytes]);
  return new Uint8Array([2, padded.length, ...padded]);
};

/**
 * Creates a certificate revocation list (CRL, RFC 5280) as PEM text. The list is valid until the authority expires,
 * because after the expiry of a list all peers would be rejected. Peers recognize an outdated list by its number.
 *
 * @param number number of the list; must increase from list to list.
 * @param entries revocation time of each certificate, by serial number.
 */
export const makeRevocationList = async (
  authority: Authority,
  number: bigint,
  entries: ReadonlyMap<string, Date>,
): Promise<string> => {
  const list = await X509CrlGenerator.create({
    issuer: authority.certificate.subjectName,
    thisUpdate: new Date(Date.now() - clockToleranceMilliseconds),
    nextUpdate: authority.certificate.notAfter,
    signingAlgorithm,
    signingKey: authority.keys.privateKey,
    entries: [...entries].map(([serialNumber, revocationDate]) => ({
      serialNumber: serialNumber.padStart(serialNumber.length + (serialNumber.length % 2), "0"),
      revocationDate,
      reason: X509CrlReason.keyCompromise,
    })),
    extensions: [
      new Extension("2.5.29.20", false, derInteger(number)),
      await AuthorityKeyIdentifierExtension.create(authority.keys.publicKey),
    ],
  });
  return pem("X509 CRL", new Uint8Array(list.rawData)); // OpenSSL does not know the PEM label that the library uses
};
