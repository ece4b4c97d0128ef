import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { expect, test } from "vitest";
import { crc32c, maskedCrc32c } from "@skein/collectives";
import { encodeHistogramEvent, encodeScalarEvent, encodeVersionEvent, EventFile, frameRecord } from "./tensorboard.ts";

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

test("CRC-32C equals the vectors of RFC 3720, appendix B.4", () => {
  expect(crc32c(new TextEncoder().encode("123456789"))).toBe(0xe3069283);
  expect(crc32c(new Uint8Array(32))).toBe(0x8a9136aa);
  expect(crc32c(new Uint8Array(32).fill(0xff))).toBe(0x62a8ab43);
  expect(crc32c(Uint8Array.from({ length: 32 }, (_, i) => i))).toBe(0x46dd794e);
  expect(crc32c(new Uint8Array(0))).toBe(0);
});

test("the mask is a rotation by 15 bits and an addition", () => {
  // 0xe3069283 >>> 15 = 0x0001c60d, << 17 = 0x25060000; their union 0x2507c60d + 0xa282ead8 = 0xc78ab0e5
  expect(maskedCrc32c(new TextEncoder().encode("123456789"))).toBe(0xc78ab0e5);
});

test("events are the bytes that protocol buffers prescribe", () => {
  expect(hex(encodeVersionEvent(1.5))).toBe(
    `09${"000000000000f83f"}1a0d${Buffer.from("brain.Event:2").toString("hex")}`,
  );
  // wall_time 1.5; step 300 = ac 02; summary of 13 bytes: value of 11 bytes: tag "loss", simple_value 0.5
  expect(hex(encodeScalarEvent(1.5, 300, { loss: 0.5 }))).toBe(
    `09${"000000000000f83f"}10ac022a0d0a0b0a04${Buffer.from("loss").toString("hex")}150000003f`,
  );
  expect(hex(encodeScalarEvent(0, 0, {}))).toBe("09000000000000000010002a00");
});

const valueOf = (reader: BinaryReader, type: WireType): unknown => {
  if (type === WireType.Varint) return Number(reader.uint64());
  if (type === WireType.Bit64) return reader.double();
  return type === WireType.Bit32 ? reader.float() : reader.bytes();
};

/** Returns the fields of a message as read by the library: number, wire type, value. */
const fieldsOf = (message: Uint8Array): [number, WireType, unknown][] => {
  const reader = new BinaryReader(message);
  const fields: [number, WireType, unknown][] = [];
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    fields.push([field, type, valueOf(reader, type)]);
  }
  return fields;
};

test("another protobuf reader finds the written values, whatever the step, the tags and the values", () => {
  const tag = fc.string({ unit: "grapheme", maxLength: 300 });
  const anyStep = fc.oneof(fc.constantFrom(0, 127, 128, 2 ** 14, 2 ** 32, Number.MAX_SAFE_INTEGER), fc.maxSafeNat());
  const scalars = fc.dictionary(tag, fc.float(), { maxKeys: 5, noNullPrototype: true });
  fc.assert(
    fc.property(fc.double({ min: 0, noNaN: true, max: 1e10 }), anyStep, scalars, (seconds, step, values) => {
      const [wall, steps, summary, ...rest] = fieldsOf(encodeScalarEvent(seconds, step, values));
      expect([wall, steps, rest]).toEqual([[1, WireType.Bit64, seconds], [2, WireType.Varint, step], []]);
      expect(summary!.slice(0, 2)).toEqual([5, WireType.LengthDelimited]);
      const read = fieldsOf(summary![2] as Uint8Array).map(([field, , value]) => {
        const [name, number] = fieldsOf(value as Uint8Array);
        expect([field, name![0], number!.slice(0, 2)]).toEqual([1, 1, [2, WireType.Bit32]]);
        return [new TextDecoder().decode(name![2] as Uint8Array), number![2]];
      });
      expect(read).toEqual(Object.entries(values));
    }),
  );
});

test("another reader finds a histogram: its statistics, and the upper edge and count of each bin", () => {
  const histogram = { size: 6, zeros: 1, nonFinite: 1, min: -1, max: 3, mean: 0.5, norm: 4, counts: [2, 0, 1, 2] };
  const [, , summary] = fieldsOf(encodeHistogramEvent(1.5, 7, { "weights/a": histogram }));
  const [tag, histo] = fieldsOf(fieldsOf(summary![2] as Uint8Array)[0]![2] as Uint8Array);
  expect([tag![0], new TextDecoder().decode(tag![2] as Uint8Array), histo![0]]).toEqual([1, "weights/a", 5]);
  const fields = fieldsOf(histo![2] as Uint8Array).map(([field, , value]) => [
    field,
    typeof value === "number" ? value : [...new Float64Array((value as Uint8Array).slice().buffer)],
  ]);
  expect(fields).toEqual([
    [1, -1],
    [2, 3],
    [3, 5],
    [4, 2.5],
    [5, 16],
    [6, [0, 1, 2, 3]],
    [7, [2, 0, 1, 2]],
  ]);
});

test("a record is framed with the lengths and checksums of a file that TensorFlow wrote", () => {
  // The first record of any event file is a version event of 24 bytes. The masked CRC of its length is a known
  // constant.
  const frame = frameRecord(encodeVersionEvent(1.5));
  expect(hex(frame.subarray(0, 12))).toBe("1800000000000000a37f4b22");
  expect(frame.length).toBe(8 + 4 + 24 + 4);
  expect(new DataView(frame.buffer).getUint32(36, true)).toBe(maskedCrc32c(frame.subarray(12, 36)));
});

test("an event file holds its records one after another", () => {
  const folder = mkdtempSync(join(tmpdir(), "skein-events-"));
  try {
    const events = new EventFile(folder, () => 1500);
    events.scalars(1, { loss: 2 });
    events.close();
    const [name] = readdirSync(folder);
    expect(name).toMatch(/^events\.out\.tfevents\.1\.skein\./);
    expect(hex(readFileSync(join(folder, name!)))).toBe(
      hex(frameRecord(encodeVersionEvent(1.5))) + hex(frameRecord(encodeScalarEvent(1.5, 1, { loss: 2 }))),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});
