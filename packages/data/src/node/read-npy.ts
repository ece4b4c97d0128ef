import { bytesPerElement, elementCount, type Shape } from "@skein/tensor-core";
import { hostArrayType } from "@skein/tensor-core/backend";
import { DataError } from "../errors.ts";
import { joinBytes } from "../join-bytes.ts";
import { npyDataOffset, type NpyHeader, npyPrefixBytes, parseNpyHeader, requireWholeNpy } from "../npy.ts";
import { type NpyTarget, NpyWriter } from "../npy-writer.ts";
import { requireMemory } from "./require-memory.ts";

/** A numeric array in shared memory, in C order. */
export interface SharedArray {
  /** Name of the array in errors. */
  readonly name: string;
  readonly dtype: NpyTarget;
  readonly shape: Shape;
  readonly bytes: Uint8Array;
}

/** Content of a `.npy` file, read in chunks. */
export interface NpySource {
  readonly name: string;
  readonly sizeBytes: number;
  readonly pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
}

const isHeaderWhole = (head: Uint8Array, name: string): boolean =>
  head.length >= npyPrefixBytes && head.length >= npyDataOffset(head, name);

/**
 * Reads an array into shared memory, chunk by chunk.
 *
 * @param targetOf Returns the dtype to which elements are converted.
 * @throws DataError if the content is not a numeric array, is truncated, does not fit into the target dtype, or does
 * not fit into memory.
 */
export const readNpy = async (
  { name, sizeBytes, pieces }: NpySource,
  targetOf: (header: NpyHeader) => NpyTarget,
): Promise<SharedArray> => {
  let head: Uint8Array = new Uint8Array(0);
  let array: { readonly writer: NpyWriter; readonly shared: SharedArray } | undefined;
  const begin = (): void => {
    const header = parseNpyHeader(head, name);
    requireWholeNpy(header, name, sizeBytes);
    const dtype = targetOf(header);
    const count = elementCount(header.shape);
    requireMemory(count * bytesPerElement[dtype], `the numbers of ${name}`, "use a smaller array");
    const elements = new hostArrayType[dtype](new SharedArrayBuffer(count * bytesPerElement[dtype]));
    const writer = new NpyWriter(header, name, dtype, elements);
    writer.take(head.subarray(header.dataOffset));
    array = { writer, shared: { name, dtype, shape: header.shape, bytes: new Uint8Array(elements.buffer) } };
  };
  for await (const piece of pieces) {
    if (array !== undefined) {
      array.writer.take(piece);
      continue;
    }
    head = joinBytes(head, piece);
    if (isHeaderWhole(head, name)) begin();
  }
  if (array === undefined) begin(); // throws, and reports the missing part
  if (array === undefined) throw new DataError(`${name} does not contain an array; write it again with numpy.save`);
  array.writer.end();
  return array.shared;
};
