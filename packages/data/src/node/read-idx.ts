import { existsSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { DataError } from "../errors.ts";
import type { NamedBytes } from "../images.ts";
import { readShared } from "./read-shared.ts";

/** A few bytes may unpack to any number; what is larger is no data set that lies in memory as a whole. */
const mostUnpackedBytes = 2 ** 31;

const isGzip = ({ bytes }: NamedBytes): boolean => bytes[0] === 0x1f && bytes[1] === 0x8b;

const unpacked = (packed: NamedBytes, cure: string): NamedBytes => {
  let plain: Uint8Array;
  try {
    plain = gunzipSync(packed.bytes, { maxOutputLength: mostUnpackedBytes });
  } catch (cause) {
    throw new DataError(
      `${packed.name} cannot be unpacked (${cause instanceof Error ? cause.message : String(cause)}); ${cure}`,
      { cause },
    );
  }
  const bytes = new Uint8Array(new SharedArrayBuffer(plain.byteLength));
  bytes.set(plain);
  return { name: packed.name, bytes };
};

/** Names under which a file is found: as it is called, with a dot in front of `idx` as Kaggle's are, and packed. */
const namesOf = (path: string): string[] =>
  [path, path.replace(/-(idx\d-ubyte)$/, ".$1")].flatMap((name) => [name, `${name}.gz`]);

/**
 * An IDX file in shared memory, unpacked if gzip has compressed it: `path`, or where that is not there, the same with
 * `.gz` at its end or with `.idx` in place of `-idx`.
 *
 * @throws DataError that ends with `cure`.
 */
export const readIdx = (path: string, cure: string): NamedBytes => {
  const file = readShared(namesOf(path).find((name) => existsSync(name)) ?? path, cure, "idx");
  return isGzip(file) || file.name.endsWith(".gz") ? unpacked(file, cure) : file;
};
