import fc from "fast-check";
import { expect, test } from "vitest";
import { crc32c } from "./crc32c.ts";
import { crc32cOf } from "./folded-crc32c.ts";
import {
  decodeHeader,
  encodeHeader,
  type FrameHeader,
  frameFlags,
  type FrameType,
  frameTypes,
  headerBytes,
} from "./frame.ts";

const word = fc.nat({ max: 2 ** 32 - 1 });
const header: FrameHeader = {
  type: "data",
  flags: frameFlags.last,
  stream: 2,
  sequence: 3,
  tag: 0xdeadbeef,
  length: 5,
};
const payload = Uint8Array.of(1, 2, 3, 4, 5);

test("encodes a header in the documented layout", () => {
  const bytes = encodeHeader(header, payload);
  const fields = [
    [0x53, 0x4b, 0x4e, 0x31, 2, 4, 4, 0], // magic, version, type, flags
    [2, 0, 0, 0, 3, 0, 0, 0, 0xef, 0xbe, 0xad, 0xde], // stream, sequence, tag
    [5, 0, 0, 0, 0, 0, 0, 0], // length
  ].flat();
  expect([...bytes.subarray(0, 28)]).toEqual(fields);
  expect(new DataView(bytes.buffer).getUint32(28, true)).toBe(crc32c(Uint8Array.from([...fields, ...payload])));
});

test("decodes what it encodes", () => {
  const types = fc.constantFrom(...(Object.keys(frameTypes) as FrameType[]));
  fc.assert(
    fc.property(
      types,
      fc.nat({ max: 7 }),
      word,
      word,
      word,
      fc.uint8Array(),
      fc.nat({ max: 9 }),
      (type, flags, stream, sequence, tag, body, offset) => {
        const header = { type, flags, stream, sequence, tag, length: body.length };
        const target = new Uint8Array(offset + headerBytes);
        const bytes = encodeHeader(header, body, target.subarray(offset));
        expect(bytes.byteOffset).toBe(offset);
        const { checksum, ...decoded } = decodeHeader(target, offset);
        expect(decoded).toEqual(header);
        const covered = (flags & frameFlags.headerOnly) === 0 ? body : new Uint8Array(0);
        expect(checksum).toBe(crc32c(covered, crc32c(bytes.subarray(0, 28))));
      },
    ),
  );
});

test("gives the same header for a payload in pieces and for another checksum implementation", () => {
  const pieces = [payload.subarray(0, 2), payload.subarray(2, 2), payload.subarray(2)];
  expect(encodeHeader(header, pieces)).toEqual(encodeHeader(header, payload));
  expect(encodeHeader(header, payload, new Uint8Array(32), crc32cOf())).toEqual(encodeHeader(header, payload));
});

test.each([
  ["a length that is not the payload's", { length: 4 }, /frame of 4 bytes got a payload of 5/],
  ["a stream out of range", { stream: 2 ** 32 }, /stream cannot be 4294967296/],
  ["a negative sequence", { sequence: -1 }, /sequence cannot be -1/],
  ["a fractional tag", { tag: 0.5 }, /tag cannot be 0.5/],
  ["an unknown flag", { flags: 8 }, /flags cannot be 8/],
])("rejects %s when encoding", (_, change, message) => {
  expect(() => encodeHeader({ ...header, ...change }, payload)).toThrow(message);
});

test.each([
  ["another magic", 0, 0x54, "not-a-frame", /0x314e4b53, but 0x314e4b54 came/],
  ["another version", 4, 1, "protocol-version", /version 1 of the protocol, this rank version 2/],
  ["type 0", 5, 0, "frame-header", /type 0/],
  ["type 13", 5, 13, "frame-header", /type 13, but types are 1 to 12/],
  ["type 255", 5, 255, "frame-header", /type 255/],
  ["a flag of the lower byte", 6, 8, "frame-header", /flags 0x8/],
  ["a flag of the upper byte", 7, 0x80, "frame-header", /flags 0x8004/],
  ["2^63 bytes", 27, 0x80, "frame-length", /announces 9223372036854775813 bytes/],
  ["2^53 bytes", 26, 0x20, "frame-length", /announces 9007199254740997 bytes/],
])("rejects %s", (_, at, value, code, message) => {
  const bytes = encodeHeader(header, payload);
  bytes[at] = value;
  expect(() => decodeHeader(bytes)).toThrow(
    expect.objectContaining({ code, kind: "environment", message: expect.stringMatching(message) }),
  );
});

test("rejects an incomplete header", () => {
  expect(() => decodeHeader(new Uint8Array(31))).toThrow(expect.objectContaining({ code: "frame-truncated" }));
  expect(() => decodeHeader(new Uint8Array(40), 9)).toThrow(expect.objectContaining({ code: "frame-truncated" }));
});
