import { elementCount, type Shape } from "@skein/tensor-core";
import { fromF16Bits } from "@skein/tensor-core/backend";
import { DataError } from "./errors.ts";

/** Contents of the header of a `.npy` file. */
export interface NpyHeader {
  /** NumPy's name of the element type, such as `<f8`. */
  readonly descr: string;
  readonly bytesPerElement: number;
  readonly littleEndian: boolean;
  /** Whether the first dimension varies fastest. */
  readonly fortranOrder: boolean;
  readonly shape: Shape;
  /** Byte offset of the first element. */
  readonly dataOffset: number;
  readonly kind: "float" | "integer" | "bool";
}

/** Maximum number of bytes before the header's text: magic number, version, and length in two or four bytes. */
export const npyPrefixBytes = 12;

/**
 * Maximum size of a header in bytes. NumPy also limits the header size by default. Usual headers have a few hundred
 * bytes.
 */
const maxHeaderBytes = 64 * 1024;

const cure = "write it again with numpy.save";

/** Whether bytes begin with the magic number of a `.npy` file. */
export const isNpy = (bytes: Uint8Array): boolean =>
  [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59].every((byte, i) => bytes[i] === byte);

/**
 * Returns the byte offset of the first element, computed from the first `npyPrefixBytes` bytes.
 *
 * @throws DataError if the bytes are not a `.npy` file.
 */
export const npyDataOffset = (bytes: Uint8Array, name: string): number => {
  const fault = (rule: string): never => {
    throw new DataError(`${name} ${rule}; ${cure}`);
  };
  if (bytes.length < npyPrefixBytes) fault(`has ${bytes.length} bytes, too few for a NumPy array`);
  if (!isNpy(bytes)) fault("is not a NumPy array: it does not begin with the bytes \\x93NUMPY");
  const version = bytes[6]!;
  if (version < 1 || version > 3)
    fault(`has version ${version}.${bytes[7]} of the format, but only versions 1, 2 and 3 are supported`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = version === 1 ? view.getUint16(8, true) : view.getUint32(8, true);
  if (length > maxHeaderBytes)
    fault(`declares a header of ${length} bytes, but at most ${maxHeaderBytes} are allowed; it is damaged`);
  return (version === 1 ? 10 : 12) + length;
};

const refused: Readonly<Record<string, string>> = {
  O: "Python objects",
  U: "strings",
  S: "byte strings",
  a: "byte strings",
  V: "records",
  c: "complex numbers",
  M: "dates",
  m: "spans of time",
};

const sizes: Readonly<Record<string, readonly number[]>> = {
  f: [2, 4, 8],
  i: [1, 2, 4, 8],
  u: [1, 2, 4, 8],
  b: [1],
};

const typeOf = (descr: string, name: string): Omit<NpyHeader, "fortranOrder" | "shape" | "dataOffset"> => {
  const [, order, kind, digits] = /^([<>|=]?)([A-Za-z])(\d*)/.exec(descr) ?? [];
  const bytesPerElement = Number(digits);
  if (kind === undefined || sizes[kind]?.includes(bytesPerElement) !== true)
    throw new DataError(
      `${name} holds elements of type ${descr.slice(0, 40)}${refused[kind ?? ""] === undefined ? "" : `, ${refused[kind!]}`}; floats of 16, 32 or 64 bits, integers and bool are supported: convert it with astype first`,
    );
  return {
    descr,
    bytesPerElement,
    littleEndian: order !== ">",
    kind: kind === "f" ? "float" : kind === "b" ? "bool" : "integer",
  };
};

/**
 * Parses the header of a `.npy` file, version 1, 2 or 3: a Python dictionary with three keys. Source:
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 *
 * @param bytes Beginning of the file, up to `npyDataOffset` or more.
 * @param name Name of the file in errors.
 * @throws DataError if the bytes are not a `.npy` file, or if the elements are not real numbers.
 */
export const parseNpyHeader = (bytes: Uint8Array, name: string): NpyHeader => {
  const dataOffset = npyDataOffset(bytes, name);
  if (bytes.length < dataOffset)
    throw new DataError(`${name} ends within its header of ${dataOffset} bytes, so it was truncated; ${cure}`);
  const header = new TextDecoder().decode(Uint8Array.from(bytes.subarray(bytes[6] === 1 ? 10 : 12, dataOffset)));
  const descr = /(['"])descr\1\s*:\s*(['"])([^'"]*)\2/.exec(header)?.[3];
  const order = /(['"])fortran_order\1\s*:\s*(True|False)/.exec(header)?.[2];
  const dims = /(['"])shape\1\s*:\s*\(([\dL,\s]*)\)/.exec(header)?.[2];
  if (descr === undefined && /['"]descr['"]\s*:\s*\[/.test(header))
    throw new DataError(`${name} holds records of several fields; save each field as a separate array`);
  if (descr === undefined || order === undefined || dims === undefined)
    throw new DataError(
      `${name} has a header without descr, fortran_order or shape: ${JSON.stringify(header.slice(0, 60))}; ${cure}`,
    );
  const shape = dims
    .split(",")
    .map((dim) => dim.replace("L", "").trim())
    .filter((dim) => dim !== "")
    .map(Number);
  // above this size, products may be inexact
  if (shape.reduce((product, dim) => product * Math.max(dim, 1), 1) > 2 ** 48)
    throw new DataError(`${name} declares the shape [${shape.join(", ")}], which exceeds any memory; ${cure}`);
  return { ...typeOf(descr, name), fortranOrder: order === "True", shape, dataOffset };
};

/** Returns the total size in bytes of the elements in the file. */
const npyDataBytes = ({ shape, bytesPerElement }: NpyHeader): number => elementCount(shape) * bytesPerElement;

/** Checks the size of a file. @throws DataError if the size does not match the header. */
export const requireWholeNpy = (header: NpyHeader, name: string, fileBytes: number): void => {
  const expected = header.dataOffset + npyDataBytes(header);
  if (fileBytes === expected) return;
  throw new DataError(
    `${name} has ${fileBytes} bytes, but ${header.descr}[${header.shape.join(", ")}] takes ${expected}; ${fileBytes < expected ? "it was truncated: write it again" : "save each array in a separate file"}`,
  );
};

/** Returns the function that reads the element at a byte offset. 64-bit integers are rounded to doubles. */
export const npyElement = ({
  descr,
  kind,
  bytesPerElement,
  littleEndian: little,
}: NpyHeader): ((view: DataView, offset: number) => number) => {
  if (kind === "float") {
    if (bytesPerElement === 2) return (view, offset) => fromF16Bits(view.getUint16(offset, little));
    return bytesPerElement === 4
      ? (view, offset) => view.getFloat32(offset, little)
      : (view, offset) => view.getFloat64(offset, little);
  }
  if (kind === "bool") return (view, offset) => (view.getUint8(offset) === 0 ? 0 : 1);
  const isSigned = descr.includes("i");
  switch (bytesPerElement) {
    case 1:
      return isSigned ? (view, offset) => view.getInt8(offset) : (view, offset) => view.getUint8(offset);
    case 2:
      return isSigned
        ? (view, offset) => view.getInt16(offset, little)
        : (view, offset) => view.getUint16(offset, little);
    case 4:
      return isSigned
        ? (view, offset) => view.getInt32(offset, little)
        : (view, offset) => view.getUint32(offset, little);
    default:
      return isSigned
        ? (view, offset) => Number(view.getBigInt64(offset, little))
        : (view, offset) => Number(view.getBigUint64(offset, little));
  }
};
