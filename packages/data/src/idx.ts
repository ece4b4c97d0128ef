import { elementCount } from "@skein/tensor-core";
import { DataError } from "./errors.ts";

/** A u8 array from an IDX file; `data` is a view of the file's bytes. */
export interface IdxArray {
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}

const unsignedByte = 0x08;

/** Descriptions of unsupported element types, by type code. */
const otherTypes: Readonly<Record<number, string>> = {
  0x09: "signed bytes",
  0x0b: "16-bit integers",
  0x0c: "32-bit integers",
  0x0d: "32-bit floats",
  0x0e: "64-bit floats",
};

/**
 * Parses an IDX file of unsigned bytes without a copy: two zero bytes, type 0x08, number of dimensions, one big-endian
 * u32 per dimension, data. Source: LeCun, Cortes and Burges, The MNIST database of handwritten digits, "file formats".
 *
 * @param file Bytes of the file.
 * @param name Name of the file in errors, such as its path.
 * @param rank Required number of dimensions.
 * @throws DataError with the actual and the expected values, if the file is truncated or altered.
 * @example
 * ```ts
 * const file = Uint8Array.of(0, 0, 8, 1, 0, 0, 0, 2, 7, 9); // u8, one dimension of 2 values
 * console.log(parseIdx(file, "labels", 1).shape); // [2]
 * ```
 */
export const parseIdx = (file: Uint8Array, name: string, rank: number): IdxArray => {
  const cure = "the file is damaged, install the data set again";
  const headerBytes = 4 + 4 * rank;
  if (file.length < headerBytes)
    throw new DataError(
      `${name} has ${file.length} bytes, but an IDX header of ${rank} dimensions needs ${headerBytes}; ${cure}`,
    );
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const magic = view.getUint32(0);
  const expectedMagic = (unsignedByte << 8) | rank;
  if (magic !== expectedMagic) {
    const type = otherTypes[magic >>> 8];
    if (type !== undefined || (magic >>> 8 === unsignedByte && file[3]! > 0))
      throw new DataError(
        `${name} is an IDX file of ${type ?? "unsigned bytes"} with ${file[3]} dimensions, but unsigned bytes with ${rank} dimensions are required; give another file, or convert it with NumPy and use data: {kind: numpy}`,
      );
    const hex = (value: number): string => `0x${value.toString(16).padStart(8, "0")}`;
    throw new DataError(
      `${name} begins with ${hex(magic)}, but an IDX file of unsigned bytes with ${rank} dimensions begins with ${hex(expectedMagic)}; ${cure}`,
    );
  }
  const shape = Array.from({ length: rank }, (_, dim) => view.getUint32(4 + 4 * dim));
  const expected = headerBytes + elementCount(shape);
  if (file.length !== expected) {
    throw new DataError(
      `${name} has ${file.length} bytes, but its header [${shape.join(", ")}] requires ${expected}; ${file.length < expected ? "the file is truncated" : "data was appended"}: ${cure}`,
    );
  }
  return { shape, data: file.subarray(headerBytes) };
};

/**
 * Returns an IDX file with the first `count` entries of an IDX file, or with all entries if there are fewer.
 *
 * @throws DataError like `parseIdx`.
 */
export const takeIdx = (file: Uint8Array, name: string, rank: number, count: number): Uint8Array<ArrayBuffer> => {
  const { shape, data } = parseIdx(file, name, rank);
  const entries = Math.min(count, shape[0]!);
  const headerBytes = file.length - data.length;
  const taken = new Uint8Array(headerBytes + entries * elementCount(shape.slice(1)));
  taken.set(file.subarray(0, taken.length));
  new DataView(taken.buffer).setUint32(4, entries);
  return taken;
};
