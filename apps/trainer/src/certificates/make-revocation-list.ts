import "reflect-metadata"; // first: @peculiar/x509 finds its parts through it
import { AuthorityKeyIdentifierExtension, Extension, X509CrlGenerator, X509CrlReason } from "@peculiar/x509";
import { type Authority, clockToleranceMilliseconds, pem, signingAlgorithm } from "./issue-certificate.ts";

/** A positive whole number as DER. */
const derInteger = (value: bigint): Uint8Array<ArrayBuffer> => {
  const digits = value.toString(16);
  const bytes = Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, "hex");
  const padded = bytes[0]! < 0x80 ? bytes : Buffer.concat([Buffer.from([0]), bytes]);
  return new Uint8Array([2, padded.length, ...padded]);
};

/**
 * Make a list of revoked certificates (a CRL of RFC 5280), as PEM text. It holds until the authority ends: an older one
 * is told by its number, and one that ended earlier would have everybody refused when nobody made the next in time.
 *
 * @param number counts up from list to list. @param entries serial numbers, and when each was revoked.
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
  return pem("X509 CRL", new Uint8Array(list.rawData)); // the library's own label is one that OpenSSL does not know
};
