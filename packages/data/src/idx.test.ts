import { describe, expect, test } from "vitest";
import { DataError } from "./errors.ts";
import { parseIdx, takeIdx } from "./idx.ts";
import { mnistRecords } from "./mnist.ts";

const idx = (shape: readonly number[], data: readonly number[], type = 0x08): Uint8Array => {
  const file = new Uint8Array(4 + 4 * shape.length + data.length);
  const view = new DataView(file.buffer);
  file.set([0, 0, type, shape.length]);
  shape.forEach((size, dim) => view.setUint32(4 + 4 * dim, size));
  file.set(data, 4 + 4 * shape.length);
  return file;
};

describe("parseIdx", () => {
  test("reads shape and bytes", () => {
    const { shape, data } = parseIdx(idx([2, 3], [1, 2, 3, 4, 5, 6]), "file", 2);
    expect(shape).toEqual([2, 3]);
    expect([...data]).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test.each([
    [
      "shorter than its header",
      idx([2, 3], []).subarray(0, 9),
      "digits.idx has 9 bytes, but an IDX header of 2 dimensions needs 12",
    ],
    [
      "truncated",
      idx([2, 3], [1, 2, 3, 4, 5]),
      "digits.idx has 17 bytes, but its header [2, 3] requires 18; the file is truncated",
    ],
    [
      "with appended data",
      idx([2, 3], [1, 2, 3, 4, 5, 6, 7]),
      "digits.idx has 19 bytes, but its header [2, 3] requires 18; data was appended",
    ],
    [
      "of an unknown type",
      idx([2, 3], [1, 2, 3, 4, 5, 6], 0x0a),
      "begins with 0x00000a02, but an IDX file of unsigned bytes with 2 dimensions begins with 0x00000802",
    ],
    ["with an altered size", idx([2 ** 31, 3], [1]), "requires 6442450956"],
  ])("rejects a file %s, with its name and both byte counts", (_, file, message) => {
    expect(() => parseIdx(file, "digits.idx", 2)).toThrow(DataError);
    expect(() => parseIdx(file, "digits.idx", 2)).toThrow(message);
    expect(() => parseIdx(file, "digits.idx", 2)).toThrow("install the data set again");
  });

  test.each([
    ["another type", idx([2, 3], [1, 2, 3, 4, 5, 6], 0x0d), "an IDX file of 32-bit floats with 2 dimensions"],
    ["other dimensions", idx([6], [1, 2, 3, 4, 5, 6]), "an IDX file of unsigned bytes with 1 dimensions"],
  ])("rejects a valid file of %s", (_, file, message) => {
    expect(() => parseIdx(file, "digits.idx", 2)).toThrow(`digits.idx is ${message}, but unsigned bytes with 2`);
  });
});

describe("takeIdx", () => {
  const file = idx([3, 2], [1, 2, 3, 4, 5, 6]);

  test.each([
    [0, []],
    [2, [1, 2, 3, 4]],
    [3, [1, 2, 3, 4, 5, 6]],
    [9, [1, 2, 3, 4, 5, 6]],
  ])("keeps the first %d entries", (count, bytes) => {
    const { shape, data } = parseIdx(takeIdx(file, "file", 2, count), "taken", 2);
    expect(shape).toEqual([Math.min(count, 3), 2]);
    expect([...data]).toEqual(bytes);
  });

  test("rejects a damaged file", () => {
    expect(() => takeIdx(file.subarray(0, 11), "digits.idx", 2, 1)).toThrow("digits.idx has 11 bytes");
  });
});

describe("mnistRecords", () => {
  const images = { name: "images", bytes: idx([2, 28, 28], Array(2 * 784).fill(7)) };
  test("rejects unequal counts and labels above 9", () => {
    expect(() => mnistRecords(images, { name: "labels", bytes: idx([3], [0, 1, 2]) })).toThrow(
      "images holds 2 images, but labels holds 3 labels",
    );
    expect(() => mnistRecords(images, { name: "labels", bytes: idx([2], [3, 77]) })).toThrow(
      "labels: label 1 is 77, but classes are 0 to 9",
    );
    expect(() =>
      mnistRecords(
        { name: "images", bytes: idx([2, 8, 8], Array(128).fill(7)) },
        { name: "labels", bytes: idx([2], [0, 1]) },
      ),
    ).toThrow("8×8");
  });
});
