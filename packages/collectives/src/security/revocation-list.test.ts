import { X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type RevocationListOptions, makeAuthority, strangeExtension } from "../../test/network-certificates.ts";
import { isOlder, parseRevocationList, serialOf } from "./revocation-list.ts";

const authority = makeAuthority();
const [one, two, three] = [0, 1, 2].map((rank) => authority.issue([`skein:rank:${rank}`])) as [
  ReturnType<typeof authority.issue>,
  ReturnType<typeof authority.issue>,
  ReturnType<typeof authority.issue>,
];
const own = new X509Certificate(one.authority);
const serial = (text: string): string => serialOf(new X509Certificate(text).serialNumber);
const bytesOf = (text: string): Buffer => Buffer.from(text.replace(/-----.*-----/g, ""), "base64");
const pemOf = (bytes: Uint8Array): string =>
  `-----BEGIN X509 CRL-----\n${Buffer.from(bytes).toString("base64")}\n-----END X509 CRL-----\n`;

describe("a list of revoked certificates", () => {
  test("is parsed with its serials, number and times, like OpenSSL does", () => {
    const text = authority.revoke([one.certificate, three.certificate], { number: 7 });
    const list = parseRevocationList(text, own);
    expect(list.serials).toEqual(new Set([serial(one.certificate), serial(three.certificate)]));
    expect(list.serials.has(serial(two.certificate))).toBe(false);
    expect(list.number).toBe(7n);
    expect(list.nextUpdate - list.thisUpdate).toBe(2 * 86_400_000);
    expect(() => createSecureContext({ crl: text })).not.toThrow();
    expect(parseRevocationList(authority.revoke([]), own).serials.size).toBe(0);
  });

  const day = 86_400_000;
  test.each<[string, () => string, RegExp]>([
    ["of another authority", () => makeAuthority().revoke([one.certificate]), /not signed by the authority/],
    [
      "that has ended",
      () => authority.revoke([], { nextUpdate: new Date(Date.now() - day / 2) }),
      /it is valid from .* and now it is/,
    ],
    [
      "that has not begun",
      () => authority.revoke([], { thisUpdate: new Date(Date.now() + day / 2) }),
      /it is valid from .* and now it is/,
    ],
    [
      "with an unknown critical extension",
      () => authority.revoke([], { extensions: [strangeExtension] }),
      /critical extension/,
    ],
    ["that is a certificate", () => one.certificate, /holds 0 lists/],
    ["that is two lists", () => authority.revoke([]) + authority.revoke([one.certificate]), /holds 2 lists/],
    ["that is empty", () => pemOf(new Uint8Array(0)), /it ends too early/],
  ])("%s is rejected", (_, make, message) => {
    expect(() => parseRevocationList(make(), own)).toThrow(message);
  });

  /** Returns the error message for a damaged revocation list. */
  const refusalOf = (damaged: Uint8Array): string => {
    try {
      parseRevocationList(pemOf(damaged), own);
    } catch (error) {
      return (error as Error).message;
    }
    throw new Error("it was accepted");
  };

  test("with any changed byte, or truncated anywhere, is rejected", () => {
    const bytes = bytesOf(authority.revoke([one.certificate, two.certificate]));
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), fc.boolean(), (at, mask, cut) => {
        const damaged = Buffer.from(cut ? bytes.subarray(0, at) : bytes);
        if (!cut) damaged[at]! ^= mask;
        expect(refusalOf(damaged)).not.toContain("\n");
      }),
      { numRuns: 300 },
    );
  });

  test("is rejected with one line, with a newline at any position in it", () => {
    const bytes = bytesOf(authority.revoke([one.certificate, two.certificate]));
    bytes.forEach((byte, at) => {
      if (byte === 10) return;
      const damaged = Buffer.from(bytes);
      damaged[at] = 10;
      expect(refusalOf(damaged), `byte ${at}`).not.toContain("\n");
    });
  });

  test.each<[string, RevocationListOptions, RevocationListOptions, boolean]>([
    ["by its number", { number: 1 }, { number: 2 }, true],
    ["not by its number", { number: 2 }, { number: 1, thisUpdate: new Date(Date.now() - 1000) }, false],
    [
      "by its time, if one has no number",
      { number: undefined },
      { number: 1, thisUpdate: new Date(Date.now() - 1000) },
      true,
    ],
    ["not when it is the same", { number: 3 }, { number: 3 }, false],
  ])("is older %s", (_, list, other, expected) => {
    const [a, b] = [list, other].map((wishes) => parseRevocationList(authority.revoke([], wishes), own));
    expect(isOlder(a!, b!)).toBe(expected);
  });
});
