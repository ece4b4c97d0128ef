import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bytesPerElement, type DType, dtypes } from "./dtype.ts";
import { NdArray } from "./nd-array.ts";
import {
  layoutSafetensors,
  readSafetensors,
  readSafetensorsEntry,
  readSafetensorsHeader,
  readStoredHeader,
  safetensorsDataBegin,
  SafetensorsError,
  writeSafetensors,
} from "./safetensors.ts";
import { storedByteLength, storedBytesPerElement, type StoredSpec, type StoredTensor } from "./stored-dtype.ts";

const arbitraryArray: fc.Arbitrary<NdArray> = fc
  .record({
    dtype: fc.constantFrom<DType>(...dtypes),
    shape: fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 3 }),
  })
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
    expect(Array.from(bytes)).toEqual([
      padded.length,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      ...new TextEncoder().encode(padded),
      0,
      0,
      0xc0,
      0x3f,
      1,
    ]);
  });

  it("reads back what it wrote, bit for bit, for any order of insertion", () => {
    fc.assert(
      fc.property(arbitraryTensors, fc.dictionary(fc.string(), fc.string()), (tensors, metadata) => {
        const bytes = writeSafetensors(tensors, metadata);
        const reversed = writeSafetensors(
          new Map([...tensors].reverse()),
          Object.fromEntries(Object.entries(metadata).reverse()),
        );
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
        for (const entry of layoutSafetensors(tensors).header.entries)
          expect(entry.begin % bytesPerElement[entry.dtype]).toBe(0);
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

  /** Reads untrusted bytes. Expects either a result not larger than the input, or a single error of bounded length. */
  const survive = (bytes: Uint8Array): "read" | "refused" => {
    try {
      const { tensors } = readSafetensors(bytes);
      const read = [...tensors.values()].reduce((sum, array) => sum + array.data.byteLength, 0);
      expect(read).toBeLessThanOrEqual(bytes.length);
      return "read";
    } catch (error) {
      if (!(error instanceof SafetensorsError)) throw error;
      expect(error.message.length).toBeLessThan(600);
      expect(error.message).not.toMatch(/\p{Cc}/u);
      return "refused";
    }
  };

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
          survive(truncate ? bytes.subarray(0, cut % bytes.length) : bytes);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it("throws its own error, and no other, on headers with hostile parts", () => {
    const number = fc.oneof(fc.nat(8), fc.constantFrom(2 ** 31, 2 ** 32, 2 ** 53 - 1, 2 ** 53, 1e308, -1, 0.5));
    const overflow = `[${`${2 ** 53 - 1},`.repeat(25)}0]`;
    const hostile = fc.oneof(
      fc.constantFrom(
        "[".repeat(20_000),
        `{"a":`.repeat(20_000),
        `"${"x".repeat(100_000)}"`,
        `"\\u001b[2J"`,
        "null",
        "[0,0]",
        overflow,
        overflow,
        "1e999",
        "-0",
        "",
        '"',
        "{}",
        "[]",
      ),
      number.map(String),
      fc.array(number, { maxLength: 80 }).map((sizes) => JSON.stringify(sizes)),
      fc.jsonValue().map((value) => JSON.stringify(value)),
    );
    // Parts of a valid header; each part is either kept or replaced by an invalid one.
    const sound = { name: '"a"', dtype: '"U8"', shape: "[2,1]", offsets: "[0,2]", metadata: '{"k":"v"}' };
    const parts = fc.record(
      Object.fromEntries(
        Object.entries(sound).map(([key, value]) => [
          key,
          fc.oneof({ weight: 3, arbitrary: fc.constant(value) }, { weight: 1, arbitrary: hostile }),
        ]),
      ) as { [Part in keyof typeof sound]: fc.Arbitrary<string> },
    );
    const seen = { read: 0, refused: 0 };
    fc.assert(
      fc.property(parts, fc.nat(3), ({ name, dtype, shape, offsets, metadata }, again) => {
        const tensor = `${name}:{"dtype":${dtype},"shape":${shape},"data_offsets":${offsets}}`;
        seen[survive(file(`{"__metadata__":${metadata},${again === 0 ? `${tensor},` : ""}${tensor}}`, [1, 2]))]++;
      }),
      {
        numRuns: 2000,
        examples: [
          [sound, 1],
          [sound, 0],
        ],
      },
    );
    expect(Math.min(seen.read, seen.refused)).toBeGreaterThan(100); // both cases occurred
  });

  it("stops at the first fault, and reads large valid headers", () => {
    const wide = `{${Array.from({ length: 300_000 }, (_, i) => `"k${i}":0`).join(",")}}`;
    expect(() => readSafetensors(file(wide))).toThrow(
      /^safetensors: at character 6 of the header there must be tensor "k0": \{/,
    );
    const tensor = '{"dtype":"U8","shape":[0],"data_offsets":[0,0]}';
    const names = Array.from({ length: 50_000 }, (_, i) => `"${i * 524_288}":${tensor}`); // V8 stores such names as array indices
    expect(readSafetensors(file(`{${names.join(",")}}`)).tensors.size).toBe(50_000);
    expect(() =>
      readSafetensors(file(`{"${"a".repeat(1e7)}":{"dtype":"U9","shape":[],"data_offsets":[0,1]}}`, [1])),
    ).toThrow(/^.{0,300}$/);
    expect(() => readSafetensors(file(`{"${String.raw`\"`.repeat(2e6)}`))).toThrow(/a string with an end/);
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
    [
      "a header above the cap",
      new Uint8Array([0, 0, 0, 0, 0, 0, 0, 1]),
      /claims 72057594037927936 bytes, at most 100000000/,
    ],
    ["no object", file("[]"), /there must be the header: \{, but there is "\[\]"/],
    ["broken JSON", file('{"a":'), /there must be tensor "a": \{, but there is its end/],
    ["deep nesting", file(`{"a":${"[".repeat(100_000)}`), /there must be tensor "a": \{, but there is "\[\[/],
    [
      "a dtype that is nested deeply",
      file(`{"a":{"dtype":${"[".repeat(5000)}${"]".repeat(5000)}}}`),
      /the dtype of tensor "a", a string/,
    ],
    ["bytes that are not UTF-8", file({}).map((byte, i) => (i === 8 ? 0xff : byte)), /not UTF-8/],
    ["an unknown dtype", file({ a: { ...entry, dtype: "F9" } }, [1, 2]), /dtype "F9"; supported are F32/],
    ["an unknown key", file({ a: { ...entry, strides: [1] } }, [1, 2]), /has the key "strides"; the format allows/],
    ["a missing key", file({ a: { dtype: "U8", shape: [2] } }, [1, 2]), /"a" has no data_offsets/],
    [
      "a name that comes twice",
      file(`{"a":${JSON.stringify(entry)},"\\u0061":${JSON.stringify(entry)}}`, [1, 2]),
      /has the key "a" twice/,
    ],
    ["metadata that comes twice", file('{"__metadata__":{},"__metadata__":{}}'), /has the key "__metadata__" twice/],
    ["a field that comes twice", file('{"a":{"dtype":"U8","dtype":"U8"}}'), /tensor "a" has the key "dtype" twice/],
    [
      "a negative size",
      file({ a: { ...entry, shape: [-2] } }, [1, 2]),
      /a number of the shape of tensor "a", a whole number from 0, .* "-2\]/,
    ],
    ["a fraction as a size", file('{"a":{"shape":[2.0]}}'), /a whole number from 0/],
    ["a size with an exponent", file('{"a":{"shape":[2e0]}}'), /a whole number from 0/],
    ["a size that no double holds", file('{"a":{"shape":[9007199254740993]}}'), /of at most 9007199254740991/],
    [
      "a shape that overflows",
      file({ a: { ...entry, shape: [2 ** 40, 2 ** 40] } }, [1, 2]),
      /more elements than can be addressed/,
    ],
    [
      "a shape that overflows before its zero",
      file({ a: { ...entry, shape: [...new Array<number>(25).fill(2 ** 53 - 1), 0], data_offsets: [0, 0] } }),
      /more elements than can be addressed/,
    ],
    [
      "too many dimensions",
      file({ a: { ...entry, shape: new Array<number>(65).fill(1) } }, [1]),
      /has 65 dimensions, at most 64/,
    ],
    [
      "offsets of another size",
      file({ a: { ...entry, shape: [3] } }, [1, 2]),
      /takes 3 bytes, but its data_offsets \[0, 2\] span 2/,
    ],
    ["offsets in reverse", file({ a: { ...entry, data_offsets: [2, 0] } }, [1, 2]), /0 ≤ begin ≤ end/],
    ["three offsets", file({ a: { ...entry, data_offsets: [0, 2, 2] } }, [1, 2]), /0 ≤ begin ≤ end/],
    ["overlap", file({ a: entry, b: { ...entry, data_offsets: [1, 3] } }, [1, 2, 3]), /without overlap or gap/],
    ["a gap", file({ a: entry, b: { ...entry, data_offsets: [3, 5] } }, [1, 2, 3, 4, 5]), /without overlap or gap/],
    ["a second header", file('{}{"a":1}'), /spaces only, after the header's \}/],
    ["a string without an end", file(String.raw`{"a\"`), /a string with an end/],
    ["an escape that JSON does not know", file(String.raw`{"\x":1}`), /a string with escapes as in JSON/],
    ["trailing bytes", file({ a: entry }, [1, 2, 3]), /something was appended/],
    ["metadata that is not a string", file({ __metadata__: { a: 1 } }), /the value of "a" in __metadata__, a string/],
    [
      "4-bit elements that do not fill a byte",
      file({ a: { dtype: "F4", shape: [3], data_offsets: [0, 2] } }, [1, 2]),
      /of f4\[3\] does not fill its last byte/,
    ],
    ["a bool of 2", file({ a: { ...entry, dtype: "BOOL" } }, [1, 2]), /holds the byte 2/],
  ])("rejects %s", (_, bytes, message) => {
    const read = (): unknown => readSafetensors(bytes);
    expect(read).toThrow(SafetensorsError);
    expect(read).toThrow(message);
  });

  it("allocates no more than the file size", () => {
    const claims = new Uint8Array([0, 0, 0, 4, 0, 0, 0, 0]); // a header of 64 MiB
    expect(safetensorsDataBegin(claims)).toBe(2 ** 26 + 8);
    expect(() => safetensorsDataBegin(claims, 8)).toThrow(/ends at byte 67108872, but only 8 bytes are there/);
  });

  it.each([[new Array<number>(65).fill(1)], [[2 ** 40, 2 ** 40, 0]]])(
    "rejects files on writing that it would not read: %j",
    (shape) => {
      expect(() => layoutSafetensors(new Map([["a", { dtype: "u8", shape }]]))).toThrow(/reshape it/);
    },
  );

  it("does not write the reserved name", () => {
    expect(() => writeSafetensors(new Map([["__metadata__", NdArray.from([1])]]))).toThrow(/reserves that name/);
  });
});

describe("foreign element types", () => {
  const specs = new Map<string, StoredSpec>([
    ["a", { dtype: "f32", shape: [2] }],
    ["count", { dtype: "i64", shape: [] }],
    ["double", { dtype: "f64", shape: [3] }],
    ["half", { dtype: "u16", shape: [1, 3] }],
    ["short", { dtype: "i16", shape: [1] }],
    ["tiny", { dtype: "i8", shape: [5] }],
    ["wide", { dtype: "u64", shape: [0, 2] }],
    ["quarter", { dtype: "f8_e4m3", shape: [3] }],
    ["nibbles", { dtype: "f4", shape: [2, 3] }],
  ]);
  const { head, header } = layoutSafetensors(specs);

  it("are laid out aligned, and read back", () => {
    expect(header.fileBytes - header.dataBegin).toBe(8 + 8 + 24 + 6 + 2 + 5 + 3 + 3);
    expect(readStoredHeader(head, header.fileBytes)).toEqual(header);
    for (const { dtype, begin } of header.entries) expect(begin % storedBytesPerElement[dtype]).toBe(0);
    expect(new Map(header.entries.map(({ name, dtype, shape }) => [name, { dtype, shape }]))).toEqual(specs);
  });

  const foreign = (Object.keys(storedBytesPerElement) as StoredSpec["dtype"][]).filter(
    (dtype) => !(dtypes as readonly string[]).includes(dtype),
  );
  const arbitraryForeign: fc.Arbitrary<StoredTensor> = fc
    .record({ dtype: fc.constantFrom(...foreign), shape: fc.array(fc.constantFrom(0, 1, 3, 4, 8), { maxLength: 3 }) })
    .filter((spec) => Number.isInteger(storedByteLength(spec)))
    .chain((spec) => {
      const length = storedByteLength(spec);
      return fc
        .uint8Array({ minLength: length, maxLength: length })
        .map((bytes) => ({ ...spec, bytes: new Uint8Array(bytes) }));
    });

  it("are read and written next to other tensors, bit for bit", () => {
    expect(foreign).toHaveLength(15);
    fc.assert(
      fc.property(arbitraryTensors, fc.array(arbitraryForeign, { maxLength: 6 }), (own, others) => {
        const written = new Map<string, NdArray | StoredTensor>([
          ...own,
          ...others.map((tensor, i): [string, StoredTensor] => [`other ${i}`, tensor]),
        ]);
        const { tensors, foreign: read } = readSafetensors(writeSafetensors(written));
        expect(new Set([...tensors.keys(), ...read.keys()])).toEqual(new Set(written.keys()));
        for (const [i, tensor] of others.entries()) expect(read.get(`other ${i}`)).toEqual(tensor);
        for (const [name, array] of tensors) expect(array.bytes()).toEqual((written.get(name) as NdArray).bytes());
      }),
    );
  });

  it("do not prevent reading the other tensors of a module with batch normalization", () => {
    const weight = NdArray.from([1, 2]);
    const count: StoredTensor = { dtype: "i64", shape: [], bytes: Uint8Array.of(7, 0, 0, 0, 0, 0, 0, 0) };
    const file = writeSafetensors(
      new Map<string, NdArray | StoredTensor>([
        ["norm.weight", weight],
        ["norm.num_batches_tracked", count],
      ]),
    );
    const content = readSafetensors(file);
    expect(content.tensors.get("norm.weight")!.toNumbers()).toEqual([1, 2]);
    const { bytes } = content.foreign.get("norm.num_batches_tracked")!;
    expect(new BigInt64Array(bytes.slice().buffer)[0]).toBe(7n);
    file.fill(0); // the result does not share memory with the file
    expect(content.foreign.get("norm.num_batches_tracked")).toEqual(count);
  });

  it("are not written if the bytes do not match the shape", () => {
    const tensor: StoredTensor = { dtype: "i64", shape: [2], bytes: new Uint8Array(8) };
    expect(() => writeSafetensors(new Map([["count", tensor]]))).toThrow(
      /"count" of i64\[2\] takes 16 bytes, but 8 are given/,
    );
  });

  it("are rejected by readSafetensorsHeader", () => {
    expect(() => readSafetensorsHeader(head, header.fileBytes)).toThrow(/"count" has dtype "I64"; supported are F32/);
  });
});
