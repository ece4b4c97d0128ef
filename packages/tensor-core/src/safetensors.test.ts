import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bytesPerElement, type DType, dtypes } from "./dtype.ts";
import { NdArray } from "./nd-array.ts";
import {
  layoutSafetensors,
  readSafetensors,
  readSafetensorsEntry,
  readSafetensorsHeader,
  safetensorsDataBegin,
  SafetensorsError,
  writeSafetensors,
} from "./safetensors.ts";

const arbitraryArray: fc.Arbitrary<NdArray> = fc
  .record({ dtype: fc.constantFrom<DType>(...dtypes), shape: fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 3 }) })
  .chain(({ dtype, shape }) => {
    const count = shape.reduce((product, size) => product * size, 1) * bytesPerElement[dtype];
    return fc.uint8Array({ minLength: count, maxLength: count, max: dtype === "bool" ? 1 : 255 }).map((bytes) => {
      const array = NdArray.zeros(dtype, shape);
      array.bytes().set(bytes);
      return array;
    });
  });

const arbitraryTensors: fc.Arbitrary<Map<string, NdArray>> = fc
  .uniqueArray(
    fc.tuple(
      fc.string().filter((name) => name !== "__metadata__"),
      arbitraryArray,
    ),
    { selector: ([name]) => name, maxLength: 6 },
  )
  .map((entries) => new Map(entries));

const file = (header: unknown, data: readonly number[] = []): Uint8Array => {
  const json = new TextEncoder().encode(typeof header === "string" ? header : JSON.stringify(header));
  const bytes = new Uint8Array(8 + json.length + data.length);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(json.length), true);
  bytes.set(json, 8);
  bytes.set(data, 8 + json.length);
  return bytes;
};

describe("safetensors", () => {
  it("writes the bytes that the format prescribes", () => {
    const bytes = writeSafetensors(
      new Map([
        ["b", NdArray.from([1], [1], "u8")],
        ["a", NdArray.from([1.5], [], "f32")],
      ]),
      { step: "3" },
    );
    const json =
      '{"__metadata__":{"step":"3"},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[1],"data_offsets":[4,5]}}';
    const padded = json.padEnd(Math.ceil(json.length / 8) * 8, " ");
    expect(Array.from(bytes)).toEqual([padded.length, 0, 0, 0, 0, 0, 0, 0, ...new TextEncoder().encode(padded), 0, 0, 0xc0, 0x3f, 1]);
  });

  it("reads back what it wrote, bit for bit, whatever the order of insertion", () => {
    fc.assert(
      fc.property(arbitraryTensors, fc.dictionary(fc.string(), fc.string()), (tensors, metadata) => {
        const bytes = writeSafetensors(tensors, metadata);
        const reversed = writeSafetensors(new Map([...tensors].reverse()), Object.fromEntries(Object.entries(metadata).reverse()));
        expect(reversed).toEqual(bytes);
        const content = readSafetensors(bytes);
        expect(content.metadata).toEqual(metadata);
        expect(new Set(content.tensors.keys())).toEqual(new Set(tensors.keys()));
        for (const [name, array] of tensors) {
          const again = content.tensors.get(name)!;
          expect([again.dtype, again.shape]).toEqual([array.dtype, array.shape]);
          expect(again.bytes()).toEqual(array.bytes());
        }
      }),
    );
  });

  it("aligns every tensor to its element", () => {
    fc.assert(
      fc.property(arbitraryTensors, (tensors) => {
        for (const entry of layoutSafetensors(tensors).header.entries) expect(entry.begin % bytesPerElement[entry.dtype]).toBe(0);
      }),
    );
  });

  it("reads single tensors by range", () => {
    const tensors = new Map([
      ["x", NdArray.from([1, 2, 3])],
      ["y", NdArray.from([4, 5], [2], "i32")],
    ]);
    const bytes = writeSafetensors(tensors);
    const start = bytes.slice(0, safetensorsDataBegin(bytes.subarray(0, 8)));
    const entry = readSafetensorsHeader(start, bytes.length).entries.find(({ name }) => name === "y")!;
    expect(readSafetensorsEntry(entry, bytes.slice(entry.begin, entry.end)).toNumbers()).toEqual([4, 5]);
  });

  it("throws its own error, and no other, on mutated bytes", () => {
    const mutation = fc.tuple(fc.nat(), fc.nat(255));
    fc.assert(
      fc.property(
        arbitraryTensors,
        fc.array(mutation, { minLength: 1, maxLength: 4 }),
        fc.nat(),
        fc.boolean(),
        (tensors, mutations, cut, truncate) => {
          const bytes = writeSafetensors(tensors, { kind: "test" });
          for (const [at, value] of mutations) bytes[at % bytes.length] = value;
          try {
            readSafetensors(truncate ? bytes.subarray(0, cut % bytes.length) : bytes);
          } catch (error) {
            if (!(error instanceof SafetensorsError)) throw error;
          }
        },
      ),
      { numRuns: 2000 },
    );
  });

  it("throws on every truncation, naming both sizes", () => {
    const bytes = writeSafetensors(new Map([["x", NdArray.from([1, 2, 3])]]));
    for (let length = 0; length < bytes.length; length++)
      expect(() => readSafetensors(bytes.subarray(0, length))).toThrow(SafetensorsError);
    expect(() => readSafetensors(bytes.subarray(0, bytes.length - 1))).toThrow(
      new RegExp(`${bytes.length} bytes, but it has ${bytes.length - 1}`),
    );
  });

  const entry = { dtype: "U8", shape: [2], data_offsets: [0, 2] };
  it.each<[string, Uint8Array, RegExp]>([
    ["a header above the cap", new Uint8Array([0, 0, 0, 0, 0, 0, 0, 1]), /claims 72057594037927936 bytes, at most 100000000/],
    ["no object", file("[]"), /must be a JSON object/],
    ["broken JSON", file('{"a":'), /not valid JSON/],
    ["deep nesting", file(`{"a":${"[".repeat(100_000)}`), /not valid JSON/],
    ["bytes that are no UTF-8", file({}).map((byte, i) => (i === 8 ? 0xff : byte)), /not valid JSON/],
    ["an unknown dtype", file({ a: { ...entry, dtype: "F64" } }, [1, 2]), /dtype "F64"; supported are F32/],
    ["a negative size", file({ a: { ...entry, shape: [-2] } }, [1, 2]), /shape \[-2\]/],
    ["a shape that overflows", file({ a: { ...entry, shape: [2 ** 40, 2 ** 40] } }, [1, 2]), /more elements than can be addressed/],
    ["offsets of another size", file({ a: { ...entry, shape: [3] } }, [1, 2]), /takes 3 bytes, but its data_offsets \[0, 2\] span 2/],
    ["offsets in reverse", file({ a: { ...entry, data_offsets: [2, 0] } }, [1, 2]), /0 ≤ begin ≤ end/],
    ["overlap", file({ a: entry, b: { ...entry, data_offsets: [1, 3] } }, [1, 2, 3]), /without overlap or gap/],
    ["a gap", file({ a: entry, b: { ...entry, data_offsets: [3, 5] } }, [1, 2, 3, 4, 5]), /without overlap or gap/],
    ["trailing bytes", file({ a: entry }, [1, 2, 3]), /something was appended/],
    ["metadata that is no string", file({ __metadata__: { a: 1 } }), /maps "a" to 1/],
    ["a bool of 2", file({ a: { ...entry, dtype: "BOOL" } }, [1, 2]), /holds the byte 2/],
  ])("refuses %s", (_, bytes, message) => {
    const read = (): unknown => readSafetensors(bytes);
    expect(read).toThrow(SafetensorsError);
    expect(read).toThrow(message);
  });

  it("refuses to write the reserved name", () => {
    expect(() => writeSafetensors(new Map([["__metadata__", NdArray.from([1])]]))).toThrow(/reserves that name/);
  });
});
