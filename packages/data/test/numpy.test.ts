import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { gatherBatch, type Records } from "../src/index.ts";
import { loadNumpy, type NumpyOptions } from "../src/node.ts";
import { openFile } from "../src/node/file-pieces.ts";
import { openNpz } from "../src/node/npz.ts";
import { readNpy } from "../src/node/read-npy.ts";
import { parseNpyHeader } from "../src/npy.ts";
import { hostArrayType } from "@skein/tensor-core/backend";

/** Returns the path of arrays written by NumPy, see make.py. */
const place = (name: string): string => join(import.meta.dirname, "numpy", name);

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-numpy-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const flat = (values: unknown): number[] => (Array.isArray(values) ? values.flatMap(flat) : [Number(values)]);

/** Returns the bytes of a `.npy` file of version 1, as written by NumPy. */
const npy = (descr: string, shape: readonly number[], data: Uint8Array, isFortran = false): Uint8Array => {
  const dims = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  const text = `{'descr': '${descr}', 'fortran_order': ${isFortran ? "True" : "False"}, 'shape': (${dims}), }`;
  const header = new TextEncoder().encode(`${text}${" ".repeat(63 - ((10 + text.length) % 64))}\n`);
  const bytes = new Uint8Array(10 + header.length + data.length);
  bytes.set([0x93, ...new TextEncoder().encode("NUMPY"), 1, 0, header.length & 255, header.length >> 8]);
  bytes.set(header, 10);
  bytes.set(data, 10 + header.length);
  return bytes;
};

const f32 = (...values: readonly number[]): Uint8Array => new Uint8Array(Float32Array.from(values).buffer);
const i64 = (...values: readonly number[]): Uint8Array => new Uint8Array(BigInt64Array.from(values.map(BigInt)).buffer);

describe("arrays of NumPy", () => {
  test("of all number types, byte orders and layouts are read with their values", async () => {
    const expected = JSON.parse(readFileSync(place("kinds.json"), "utf8")) as Record<string, unknown>;
    const npz = await openNpz(place("kinds.npz"));
    expect([...npz.names].sort()).toEqual(Object.keys(expected).sort());
    for (const name of npz.names) {
      const array = await readNpy(npz.source(name), ({ kind }) => (kind === "float" ? "f32" : "i32"));
      const values = new hostArrayType[array.dtype](array.bytes.buffer);
      expect([name, ...values]).toEqual([name, ...flat(expected[name])]);
      expect(array.bytes.buffer).toBeInstanceOf(SharedArrayBuffer);
    }
    npz.close();
  });

  test("of versions 1, 2 and 3 of the format are equal", async () => {
    for (const version of [1, 2, 3]) {
      const file = openFile(place(`version-${version}.npy`), "", "npy");
      const source = { name: file.name, sizeBytes: file.sizeBytes, pieces: file.pieces() };
      const { bytes, shape } = await readNpy(source, () => "i32");
      file.close();
      expect(shape).toEqual([4, 3, 2]);
      expect([...new Int32Array(bytes.buffer)]).toEqual(Array.from({ length: 24 }, (_, i) => i));
    }
  });

  test("are equal for any chunk sizes and memory orders", async () => {
    const input = fc.record({
      shape: fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 4 }),
      cuts: fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1 }),
    });
    await fc.assert(
      fc.asyncProperty(input, async ({ shape, cuts }) => {
        const count = shape.reduce((product, size) => product * size, 1);
        const inC = Float32Array.from({ length: count }, (_, i) => i / 7);
        // Visits positions in Fortran order, in which the first dimension varies fastest.
        const inFortran = new Float32Array(count);
        const at = shape.map(() => 0);
        for (let to = 0; to < count; to++) {
          inFortran[to] = inC[at.reduce((placed, each, dim) => placed * shape[dim]! + each, 0)]!;
          for (let dim = 0; dim < shape.length && ++at[dim]! === shape[dim]; dim++) at[dim] = 0;
        }
        for (const [values, isFortran] of [
          [inC, false],
          [inFortran, true],
        ] as const) {
          const file = npy("<f4", shape, new Uint8Array(values.buffer), isFortran);
          const pieces: Uint8Array[] = [];
          for (let from = 0, i = 0; from < file.length; i++) {
            const to = from + cuts[i % cuts.length]!;
            pieces.push(file.slice(from, to));
            from = to;
          }
          const { bytes } = await readNpy({ name: "a", sizeBytes: file.length, pieces }, () => "f32");
          expect(new Float32Array(bytes.buffer)).toEqual(inC);
        }
      }),
      { numRuns: 60 },
    );
  });

  test("of objects, strings or other non-numbers are rejected in one line", async () => {
    const npz = await openNpz(place("refused.npz"));
    const told = [];
    for (const name of npz.names)
      told.push(
        await readNpy(npz.source(name), () => "f32").catch(({ message }: Error) =>
          message.slice(place("refused.npz").length),
        ),
      );
    npz.close();
    const cure = "; floats of 16, 32 or 64 bits, integers and bool are supported: convert it with astype first";
    expect(told).toEqual([
      `: objects holds elements of type |O, Python objects${cure}`,
      `: strings holds elements of type <U3, strings${cure}`,
      `: bytes holds elements of type |S3, byte strings${cure}`,
      `: complex holds elements of type <c16, complex numbers${cure}`,
      ": records holds records of several fields; save each field as a separate array",
      `: dates holds elements of type <M8[D], dates${cure}`,
      `: long-doubles holds elements of type <f16${cure}`,
    ]);
  });

  test("with a damaged header are rejected in one line, for any bytes", () => {
    const file = npy("<f4", [2, 2], f32(1, 2, 3, 4));
    const changes = fc.array(fc.tuple(fc.integer({ min: 0, max: file.length - 1 }), fc.integer({ min: 0, max: 255 })));
    fc.assert(
      fc.property(changes, fc.integer({ min: 0, max: file.length }), (changed, length) => {
        const bytes = file.slice(0, length);
        for (const [at, byte] of changed) bytes[at] = byte;
        try {
          parseNpyHeader(bytes, "a.npy");
        } catch (error) {
          expect((error as Error).name).toBe("DataError");
          expect((error as Error).message).toMatch(/^a\.npy .*; /);
        }
      }),
    );
  });
});

describe("a data set of arrays", () => {
  const load = (more: Partial<NumpyOptions> = {}) =>
    loadNumpy({ folder, predicts: "classes", testFraction: 0.25, ...more });
  const put = (name: string, bytes: Uint8Array): void => writeFileSync(join(folder, name), bytes);
  const all = (records: Records) =>
    gatherBatch(
      records,
      Array.from({ length: records.count }, (_, i) => i),
    );
  const putGood = (): void => {
    put("x_train.npy", npy("<f4", [4, 2], f32(1, 2, 3, 4, 5, 6, 7, 8)));
    put("y_train.npy", npy("<i8", [4], i64(0, 1, 2, 1)));
  };

  test("is read from a folder or a file, stored, compressed, or in ZIP64", async () => {
    putGood();
    put("x_test.npy", npy("<f4", [1, 2], f32(9, 10)));
    put("y_test.npy", npy("<i8", [1, 1], i64(4))); // labels as a column
    const { train, test: heldOut, classes } = await load();
    expect(classes).toBe(5);
    expect(all(train)["inputs"]!.toNumbers()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(all(heldOut)["labels"]!.toNumbers()).toEqual([4]);
    for (const name of ["stored.npz", "zip64.npz"]) {
      const data = await load({ folder: undefined, file: place(name), shape: [6] });
      expect([data.train.count, data.test.count, data.train.fields["inputs"]!.shape]).toEqual([3, 1, [6]]);
    }
  });

  test("without test arrays is split the same way in every run, with each sample and its label in one part", async () => {
    const count = 40;
    const numbers = Array.from({ length: count }, (_, i) => i);
    put("x_train.npy", npy("<f4", [count], f32(...numbers)));
    put("y_train.npy", npy("<i8", [count], i64(...numbers)));
    const [one, other] = [await load(), await load()];
    const [train, heldOut] = [all(one.train), all(one.test)];
    expect(one.test.count).toBe(10);
    expect(train["inputs"]!.toNumbers()).toEqual(train["labels"]!.toNumbers());
    expect([...train["labels"]!.toNumbers(), ...heldOut["labels"]!.toNumbers()].sort((a, b) => a - b)).toEqual(numbers);
    expect(heldOut["labels"]!.toNumbers()).not.toEqual(numbers.slice(30));
    expect(all(other.test)["labels"]!.toNumbers()).toEqual(heldOut["labels"]!.toNumbers());
  });

  test("with values as targets keeps their shape", async () => {
    putGood();
    put("y_train.npy", npy("<f8", [4, 2], new Uint8Array(Float64Array.from([1, 2, 3, 4, 5, 6, 7, 8]).buffer)));
    const data = await load({ predicts: "values" });
    expect(data.classes).toBeUndefined();
    expect(data.train.fields["labels"]).toMatchObject({ dtype: "f32", shape: [2] });
  });

  test.each<[string, () => void, Partial<NumpyOptions>, RegExp]>([
    ["nothing", () => undefined, {}, /has no array x_train; its arrays: none; set inputs/],
    ["an empty file", () => put("x_train.npy", new Uint8Array()), {}, /x_train\.npy has 0 bytes, too few/],
    ["another file", () => put("x_train.npy", new Uint8Array(99)), {}, /is not a NumPy array: it does not begin/],
    [
      "a truncated file",
      () => put("x_train.npy", npy("<f4", [4, 2], f32(1, 2))),
      {},
      /has \d+ bytes, but <f4\[4, 2\] takes \d+; it was truncated/,
    ],
    [
      "two arrays",
      () => put("x_train.npy", npy("<f4", [1], f32(1, 2))),
      {},
      /takes \d+; save each array in a separate file/,
    ],
    [
      "a shape that exceeds any memory",
      () => put("x_train.npy", npy("<f4", [999999999, 999999999], f32(1))),
      {},
      /exceeds any memory/,
    ],
    [
      "a huge header",
      () => put("x_train.npy", Uint8Array.from([0x93, 78, 85, 77, 80, 89, 2, 0, 255, 255, 255, 127])),
      {},
      /declares a header of 2147483647 bytes, but at most 65536 are allowed/,
    ],
    [
      "NaN",
      () => put("x_train.npy", npy("<f4", [4, 2], f32(1, 2, 3, 4, 5, NaN, 7, 8))),
      {},
      /x_train\.npy\[2, 1\] is NaN, but must be a finite/,
    ],
    [
      "a float outside the range of f32",
      () => put("x_train.npy", npy("<f8", [1], new Uint8Array(Float64Array.of(1e300).buffer))),
      {},
      /\[0\] is 1e\+300/,
    ],
    [
      "an integer outside the range of i32",
      () => put("y_train.npy", npy("<i8", [1], i64(2 ** 31))),
      {},
      /\[0\] is 2147483648/,
    ],
    ["labels of floats", () => put("y_train.npy", npy("<f4", [4], f32(0, 1, 2, 3))), {}, /but classes are integers/],
    [
      "labels in rows",
      () => put("y_train.npy", npy("<i8", [2, 2], i64(0, 1, 1, 0))),
      {},
      /is \[2, 2\], but class labels are one number per sample.*argmax/,
    ],
    ["too few labels", () => put("y_train.npy", npy("<i8", [3], i64(0, 1, 1))), {}, /the first dimension counts/],
    ["a label below 0", () => put("y_train.npy", npy("<i8", [4], i64(0, 1, -1, 0))), {}, /\[2\] is -1, but classes a/],
    [
      "a label above the maximum",
      () => undefined,
      { classes: 2 },
      /y_train\.npy\[2\] is 2, but classes are numbered from 0 to 1; /,
    ],
    [
      "a shape with another number of elements",
      () => undefined,
      { shape: [3] },
      /has 2 numbers in each sample, \[2\], but shape: \[3\]/,
    ],
    ["test inputs without labels", () => put("x_test.npy", npy("<f4", [1, 2], f32(9, 10))), {}, /has no array y_test/],
    [
      "a folder for an array",
      () => mkdirSync(join(folder, "x_test.npy")),
      {},
      /has no array y_test|(no|not a) regular file/,
    ],
    ["no folder", () => undefined, { folder: "/no/such" }, /^\/no\/such cannot be read \(ENOENT\)/],
    ["no file", () => undefined, { folder: undefined, file: "/no/such.npz" }, /^\/no\/such\.npz cannot be read/],
    ["a folder for a file", () => undefined, { folder: undefined, file: tmpdir() }, /regular file; give an \.npz/],
    [
      "test samples of another type",
      () => {
        put("x_test.npy", npy("<i8", [1, 2], i64(9, 10)));
        put("y_test.npy", npy("<i8", [1], i64(0)));
      },
      {},
      /training samples are inputs f32\[2\] and .*, test samples inputs i32\[2\]/,
    ],
  ])("with %s is rejected in one line", async (what, change, options, line) => {
    if (what !== "nothing") putGood();
    change();
    const { message } = await load(options).then(
      () => new Error("nothing was thrown"),
      (error: Error) => error,
    );
    expect(message).toMatch(line);
    expect(message).not.toContain("\n");
  });

  test("in a truncated or altered archive is rejected in one line, wherever the damage is", async () => {
    const bytes = readFileSync(place("zip64.npz"));
    const path = join(folder, "a.npz");
    const whole = await load({ folder: undefined, file: place("zip64.npz") });
    let refused = 0;
    for (let at = 0; at < bytes.length; at += 3) {
      for (const changed of [
        bytes.subarray(0, at),
        Uint8Array.from(bytes, (byte, i) => (i === at ? byte ^ 64 : byte)),
      ]) {
        writeFileSync(path, changed);
        const outcome = await load({ folder: undefined, file: path }).catch((error: Error) => error);
        if (outcome instanceof Error) {
          refused++;
          expect([outcome.name, outcome.message.includes("\n")]).toEqual(["DataError", false]);
        } else expect(outcome).toEqual(whole); // a byte without effect, such as a date
      }
    }
    expect(refused).toBeGreaterThan(bytes.length / 3);
    copyFileSync(place("make.py"), path);
    await expect(load({ folder: undefined, file: path })).rejects.toThrow("cannot be decompressed");
  });
});
