import fc from "fast-check";
import { expect, test } from "vitest";
import { utf8Fault } from "./utf8-fault.ts";

const isDecoded = (bytes: Uint8Array): boolean => {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
};

test("bytes have no fault exactly if TextDecoder accepts them, and the bytes before a fault are valid", () => {
  const edge = fc.constantFrom(0, 0x7f, 0x80, 0x9f, 0xa0, 0xbf, 0xc1, 0xc2, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff);
  const bytes = fc.array(fc.oneof(edge, fc.integer({ min: 0, max: 255 })), { maxLength: 9 });
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), bytes, (text, tail) => {
      const all = Uint8Array.of(...new TextEncoder().encode(text), ...tail);
      const fault = utf8Fault(all);
      expect(fault === undefined).toBe(isDecoded(all));
      if (fault !== undefined) expect(isDecoded(all.subarray(0, fault))).toBe(true);
    }),
  );
});
