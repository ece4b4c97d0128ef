import { existsSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { DataError } from "../errors.ts";
import type { NamedBytes } from "../images.ts";
import { readShared } from "./read-shared.ts";

/**
 * Maximum size in bytes after decompression. A few bytes may decompress to any size, and larger data sets are not
 * stored in memory.
 */
const maxDecompressedBytes = 2 ** 31;

const isGzip = ({ bytes }: NamedBytes): boolean => bytes[0] === 0x1f && bytes[1] === 0x8b;

const decompressed = (packed: NamedBytes, cure: string): NamedBytes => {
  let plain: Uint8Array;
  try {
    plain = gunzipSync(packed.bytes, { maxOutputLength: maxDecompressedBytes });
  } catch (cause) {
    throw new DataError(
      `${packed.name} cannot be decompressed (${cause instanceof Error ? cause.message : String(cause)}); ${cure}`,
      { cause },
    );
  }
  const bytes = new Uint8Array(new SharedArrayBuffer(plain.byteLength));
  bytes.set(plain);
  return { name: packed.name, bytes };
};

/**
 * Returns the paths at which a file is searched: the given path, and the path with `.idx` instead of `-idx` (as on
 * Kaggle), and both paths with `.gz` appended.
 */
const namesOf = (path: string): string[] =>
  [path, path.replace(/-(idx\d-ubyte)$/, ".$1")].flatMap((name) => [name, `${name}.gz`]);

/**
 * Reads an IDX file into shared memory, and decompresses gzip. If `path` does not exist, tries the same name with `.gz`
 * appended, or with `.idx` instead of `-idx`.
 *
 * @throws DataError that ends with `cure`.
 */
export const readIdx = (path: string, cure: string): NamedBytes => {
  const file = readShared(namesOf(path).find((name) => existsSync(name)) ?? path, cure, "idx");
  return isGzip(file) || file.name.endsWith(".gz") ? decompressed(file, cure) : file;
};
