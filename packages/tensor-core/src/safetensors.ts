import { bytesPerElement, type DType, dtypes, hostArrayType } from "./dtype.ts";
import { ArgumentError } from "./errors.ts";
import { excerpt, excerptName } from "./excerpt.ts";
import { NdArray } from "./nd-array.ts";
import { type DescribedTensor, parseHeader, SafetensorsError } from "./safetensors-header.ts";
import type { TensorSpec } from "./shape.ts";
import {
  storedByteLength,
  storedBytesPerElement,
  type StoredDType,
  type StoredSpec,
  type StoredTensor,
} from "./stored-dtype.ts";

export { SafetensorsError } from "./safetensors-header.ts";

/** Spec and location of one tensor: bytes `begin` (inclusive) to `end` (exclusive) of the file. */
export type SafetensorsEntry<Spec extends StoredSpec = TensorSpec> = Pick<Spec, "dtype" | "shape"> & {
  readonly name: string;
  readonly begin: number;
  readonly end: number;
};

/** Parsed header of a safetensors file. */
export interface SafetensorsHeader<Spec extends StoredSpec = TensorSpec> {
  /** Spec and location of each tensor, in file order. */
  readonly entries: readonly SafetensorsEntry<Spec>[];
  readonly metadata: Readonly<Record<string, string>>;
  /** Byte offset of the tensor data in the file. */
  readonly dataBegin: number;
  /** Size of the whole file, bytes. */
  readonly fileBytes: number;
}

/** Content of a safetensors file: tensors by name, and metadata. */
export interface SafetensorsContent {
  /** Tensors by name, in file order. */
  readonly tensors: ReadonlyMap<string, NdArray>;
  /** Tensors whose element types `NdArray` does not support, such as i64, as raw bytes by name; in file order. */
  readonly foreign: ReadonlyMap<string, StoredTensor>;
  readonly metadata: Readonly<Record<string, string>>;
}

/**
 * Maximum header length in bytes, as in the reference implementation: https://github.com/huggingface/safetensors
 * (`MAX_HEADER_SIZE`).
 */
const maxHeaderBytes = 100_000_000;
const prefixBytes = 8;

/**
 * Maximum number of dimensions of a tensor: the limit of NumPy, and therefore the limit of most programs that read our
 * files.
 */
const maxDims = 64;

/**
 * Returns the rule that a shape violates, or undefined for a valid shape. The number of dimensions is limited, and the
 * product of the nonzero sizes must be addressable: even if a size is zero, readers may compute partial products of the
 * other sizes.
 */
const shapeFault = ({ dtype, shape }: StoredSpec): string | undefined => {
  if (shape.length > maxDims) return `has ${shape.length} dimensions, at most ${maxDims} are allowed`;
  const bytes = storedByteLength({ dtype, shape: shape.filter((size) => size !== 0) });
  if (!Number.isSafeInteger(Math.ceil(bytes)))
    return `of shape ${excerpt(shape)} has more elements than can be addressed`;
  const whole = Number.isInteger(storedByteLength({ dtype, shape }));
  return whole ? undefined : `of ${dtype}${excerpt(shape)} does not fill its last byte`;
};

const nameOfDType: Readonly<Record<StoredDType, string>> = {
  f32: "F32",
  f16: "F16",
  bf16: "BF16",
  i32: "I32",
  u32: "U32",
  u8: "U8",
  bool: "BOOL",
  f64: "F64",
  i64: "I64",
  u64: "U64",
  i16: "I16",
  u16: "U16",
  i8: "I8",
  c64: "C64",
  f8_e4m3: "F8_E4M3",
  f8_e4m3fnuz: "F8_E4M3FNUZ",
  f8_e5m2: "F8_E5M2",
  f8_e5m2fnuz: "F8_E5M2FNUZ",
  f8_e8m0: "F8_E8M0",
  f6_e2m3: "F6_E2M3",
  f6_e3m2: "F6_E3M2",
  f4: "F4",
};
type DTypeNames<D extends StoredDType> = ReadonlyMap<string, D>;
const namesOf = <D extends StoredDType>(known: readonly D[]): DTypeNames<D> =>
  new Map(known.map((dtype) => [nameOfDType[dtype], dtype]));
const ownDTypes = namesOf<DType>(dtypes);
const storedDTypes = namesOf(Object.keys(nameOfDType) as StoredDType[]);

/**
 * Computes the layout of a file without its data, so that a writer can stream the tensors after the header.
 *
 * The layout depends only on names and specs. Tensors are sorted by decreasing element size (so that each tensor is
 * aligned to its element size), then by name in code-unit order. Metadata keys are sorted. The header is padded with
 * spaces to a multiple of 8 bytes.
 *
 * @throws ArgumentError if a name is the reserved name `__metadata__`, a shape is not supported, or the header exceeds
 * 100 MB.
 */
export const layoutSafetensors = <Spec extends StoredSpec>(
  specs: ReadonlyMap<string, Spec>,
  metadata: Readonly<Record<string, string>> = {},
): { readonly head: Uint8Array<ArrayBuffer>; readonly header: SafetensorsHeader<Spec> } => {
  if (specs.has("__metadata__"))
    throw new ArgumentError(
      'safetensors: a tensor cannot be named "__metadata__", the format reserves that name; rename it',
    );
  const order = [...specs].sort(
    ([nameA, a], [nameB, b]) =>
      storedBytesPerElement[b.dtype] - storedBytesPerElement[a.dtype] || (nameA < nameB ? -1 : nameA > nameB ? 1 : 0),
  );
  const keys = Object.keys(metadata).sort();
  // The JSON is assembled manually, because a JavaScript object lists integer-like names first, regardless of insertion
  // order.
  const fields =
    keys.length === 0
      ? []
      : [`"__metadata__":{${keys.map((key) => `${JSON.stringify(key)}:${JSON.stringify(metadata[key])}`).join(",")}}`];
  let offset = 0;
  const relative = order.map(([name, { dtype, shape }]) => {
    const fault = shapeFault({ dtype, shape });
    if (fault !== undefined)
      throw new ArgumentError(`safetensors: tensor ${excerptName(name)} ${fault}; reshape it before it is written`);
    const begin = offset;
    offset += storedByteLength({ dtype, shape });
    fields.push(
      `${JSON.stringify(name)}:{"dtype":"${nameOfDType[dtype]}","shape":${JSON.stringify(shape)},"data_offsets":[${begin},${offset}]}`,
    );
    return { name, dtype, shape, begin, end: offset };
  });
  const json = new TextEncoder().encode(`{${fields.join(",")}}`);
  const headerBytes = Math.ceil(json.length / 8) * 8;
  if (headerBytes > maxHeaderBytes)
    throw new ArgumentError(
      `safetensors: the header would have ${headerBytes} bytes, the format allows ${maxHeaderBytes}; write fewer tensors per file or less metadata`,
    );
  const dataBegin = prefixBytes + headerBytes;
  const head = new Uint8Array(dataBegin).fill(0x20);
  new DataView(head.buffer).setBigUint64(0, BigInt(headerBytes), true);
  head.set(json, prefixBytes);
  const entries = relative.map((entry) => ({ ...entry, begin: entry.begin + dataBegin, end: entry.end + dataBegin }));
  return { head, header: { entries, metadata, dataBegin, fileBytes: dataBegin + offset } };
};

const bytesOf = (name: string, tensor: NdArray | StoredTensor, expected: number): Uint8Array => {
  const bytes = typeof tensor.bytes === "function" ? tensor.bytes() : tensor.bytes;
  if (bytes.length !== expected)
    throw new ArgumentError(
      `safetensors: tensor ${excerptName(name)} of ${tensor.dtype}${excerpt(tensor.shape)} takes ${expected} bytes, but ${bytes.length} are given; give as many`,
    );
  return bytes;
};

/**
 * Encodes tensors as the bytes of one file. Element types that `NdArray` does not support are allowed. Equal tensors
 * and metadata give equal bytes.
 *
 * Cost: one copy of the data. To avoid holding the data in memory twice, write the parts of `layoutSafetensors`.
 * @throws ArgumentError in the same cases as `layoutSafetensors`, and if the number of bytes of a tensor does not match
 * its shape.
 * @example
 * ```ts
 * const file = writeSafetensors(new Map([["w", NdArray.from([1, 2])]]), { step: "3" });
 * const { tensors, metadata } = readSafetensors(file);
 * console.log(tensors.get("w")!.toNumbers(), metadata); // [1, 2] { step: '3' }
 * ```
 */
export const writeSafetensors = (
  tensors: ReadonlyMap<string, NdArray | StoredTensor>,
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array<ArrayBuffer> => {
  const { head, header } = layoutSafetensors<StoredSpec>(tensors, metadata);
  const file = new Uint8Array(header.fileBytes);
  file.set(head);
  for (const { name, begin, end } of header.entries) file.set(bytesOf(name, tensors.get(name)!, end - begin), begin);
  return file;
};

/**
 * Returns the byte offset of the tensor data, computed from the first 8 bytes of a file. The bytes before this offset
 * are the input of `readSafetensorsHeader`.
 *
 * @param fileBytes Size of the whole file in bytes, against which the offset is checked. Default: no check.
 * @throws SafetensorsError if fewer than 8 bytes are given, or the header is longer than 100 MB or than the file.
 */
export const safetensorsDataBegin = (start: Uint8Array, fileBytes: number = Infinity): number => {
  if (start.length < prefixBytes)
    throw new SafetensorsError(
      `the file has ${start.length} bytes, but its header length alone takes ${prefixBytes}; the file is truncated, restore it from another copy`,
    );
  const headerBytes = new DataView(start.buffer, start.byteOffset, prefixBytes).getBigUint64(0, true);
  if (headerBytes > maxHeaderBytes) {
    throw new SafetensorsError(
      `the header claims ${headerBytes} bytes, at most ${maxHeaderBytes} are allowed; this is another format or a damaged file`,
    );
  }
  const dataBegin = prefixBytes + Number(headerBytes);
  if (fileBytes < dataBegin)
    throw new SafetensorsError(
      `the header ends at byte ${dataBegin}, but only ${fileBytes} bytes are there; the file is truncated, restore it from another copy`,
    );
  return dataBegin;
};

const checkEntry = <D extends StoredDType>(
  name: string,
  { dtype: dtypeName, shape, dataOffsets }: DescribedTensor,
  dataBegin: number,
  known: DTypeNames<D>,
): SafetensorsEntry<StoredSpec & { readonly dtype: D }> => {
  const tensor = `tensor ${excerptName(name)}`;
  const dtype = known.get(dtypeName);
  if (dtype === undefined) {
    throw new SafetensorsError(
      `${tensor} has dtype ${excerpt(dtypeName)}; supported are ${[...known.keys()].join(", ")}; convert the tensor`,
    );
  }
  const fault = shapeFault({ dtype, shape });
  if (fault !== undefined) throw new SafetensorsError(`${tensor} ${fault}; the file is damaged`);
  const [begin, end] = dataOffsets;
  if (dataOffsets.length !== 2 || begin === undefined || end === undefined || end < begin)
    throw new SafetensorsError(
      `${tensor} has data_offsets ${excerpt(dataOffsets)}; they must be [begin, end] with 0 ≤ begin ≤ end, the file is damaged`,
    );
  const expected = storedByteLength({ dtype, shape });
  if (end - begin !== expected)
    throw new SafetensorsError(
      `${tensor} of ${dtype}${excerpt(shape)} takes ${expected} bytes, but its data_offsets [${begin}, ${end}] span ${end - begin}; the file is damaged`,
    );
  return { name, dtype, shape, begin: begin + dataBegin, end: end + dataBegin };
};

/**
 * Reads and checks the header of a file whose tensors all have element types of `DType`. For other files, use
 * `readStoredHeader`.
 *
 * @param start First bytes of the file, at least `safetensorsDataBegin(start)`.
 * @param fileBytes Size of the whole file in bytes. Default: `start.length`.
 * @throws SafetensorsError if the header is invalid, a name is duplicate, tensors overlap or leave gaps, or the file
 * size differs from the size in the header. In the last case, the message contains both sizes.
 */
export const readSafetensorsHeader = (start: Uint8Array, fileBytes: number = start.length): SafetensorsHeader =>
  readHeader(start, fileBytes, ownDTypes);

/** Variant of `readSafetensorsHeader` for tensors of any element type that the format defines. */
export const readStoredHeader = (start: Uint8Array, fileBytes: number = start.length): SafetensorsHeader<StoredSpec> =>
  readHeader(start, fileBytes, storedDTypes);

const readHeader = <D extends StoredDType>(
  start: Uint8Array,
  fileBytes: number,
  known: DTypeNames<D>,
): SafetensorsHeader<StoredSpec & { readonly dtype: D }> => {
  const dataBegin = safetensorsDataBegin(start, Math.min(start.length, fileBytes));
  const { tensors, metadata } = parseHeader(start.subarray(prefixBytes, dataBegin));
  const entries = [...tensors]
    .map(([name, described]) => checkEntry(name, described, dataBegin, known))
    .sort((a, b) => a.begin - b.begin || a.end - b.end);
  let expected = dataBegin;
  let previous: string | undefined;
  for (const { name, begin, end } of entries) {
    if (begin !== expected) {
      throw new SafetensorsError(
        `tensor ${excerptName(name)} begins at byte ${begin}, but ${previous === undefined ? "the header" : `tensor ${excerptName(previous)}`} ends at byte ${expected}; tensors must follow each other without overlap or gap, the file is damaged`,
      );
    }
    expected = end;
    previous = name;
  }
  if (fileBytes !== expected) {
    throw new SafetensorsError(
      `the header describes a file of ${expected} bytes, but it has ${fileBytes}; ${fileBytes < expected ? "it is truncated" : "something was appended"}, restore it from another copy`,
    );
  }
  return { entries, metadata, dataBegin, fileBytes };
};

/**
 * Creates the array of a header entry from a copy of `bytes`, which are bytes `entry.begin` to `entry.end` in the file.
 * @throws SafetensorsError if the byte count differs, or a bool is neither 0 nor 1.
 */
export const readSafetensorsEntry = (entry: SafetensorsEntry, bytes: Uint8Array): NdArray => {
  if (bytes.length !== entry.end - entry.begin) {
    throw new SafetensorsError(
      `tensor ${excerptName(entry.name)} takes ${entry.end - entry.begin} bytes, but ${bytes.length} were read; the file is truncated, restore it from another copy`,
    );
  }
  if (entry.dtype === "bool") {
    const bad = bytes.find((byte) => byte > 1);
    if (bad !== undefined)
      throw new SafetensorsError(
        `tensor ${excerptName(entry.name)} of bool holds the byte ${bad}; only 0 and 1 are allowed, the file is damaged`,
      );
  }
  const own = new Uint8Array(bytes); // a copy: aligned, and independent of the caller's buffer
  return new NdArray(
    entry.dtype,
    entry.shape,
    new hostArrayType[entry.dtype](own.buffer, 0, own.length / bytesPerElement[entry.dtype]),
  );
};

const isOwn = (entry: SafetensorsEntry<StoredSpec>): entry is SafetensorsEntry =>
  ownDTypes.has(nameOfDType[entry.dtype]);

/**
 * Reads a whole file (little-endian hosts, as all JavaScript hosts are today).
 *
 * @returns Tensors by name, and the metadata. Tensors whose element types `NdArray` does not support are in `foreign`,
 * as bytes.
 * @throws SafetensorsError if the file is invalid. No input causes any other error.
 * @example
 * ```ts
 * const file = writeSafetensors(new Map([["w", NdArray.from([1, 2])]]), { format: "pt" });
 * const { tensors, metadata } = readSafetensors(file);
 * console.log(tensors.get("w")!.toNumbers(), metadata); // [1, 2] { format: 'pt' }
 * ```
 * Source: https://huggingface.co/docs/safetensors (format).
 */
export const readSafetensors = (file: Uint8Array): SafetensorsContent => {
  const { entries, metadata } = readStoredHeader(file);
  const tensors = new Map<string, NdArray>();
  const foreign = new Map<string, StoredTensor>();
  for (const entry of entries) {
    const { name, dtype, shape, begin, end } = entry;
    if (isOwn(entry)) tensors.set(name, readSafetensorsEntry(entry, file.subarray(begin, end)));
    else foreign.set(name, { dtype, shape, bytes: new Uint8Array(file.subarray(begin, end)) });
  }
  return { tensors, foreign, metadata };
};
