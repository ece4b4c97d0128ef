import { existsSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { DataError } from "../errors.ts";
import type { NamedBytes } from "../images.ts";
import { readShared } from "./read-shared.ts";

/** A few bytes may unpack to any number; what is larger is no data set that lies in memory as a whole. */
const mostUnpackedBytes = 2 ** 31;

const unpack = (path: string, cure: string): NamedBytes => {
  const packed = readShared(path, cure);
  let plain: Uint8Array;
  try {
    plain = gunzipSync(packed.bytes, { maxOutputLength: mostUnpackedBytes });
  } catch (cause) {
    throw new DataError(
      `${path} cannot be unpacked (${cause instanceof Error ? cause.message : String(cause)}); ${cure}`,
      { cause },
    );
  }
  const bytes = new Uint8Array(new SharedArrayBuffer(plain.byteLength));
  bytes.set(plain);
  return { name: path, bytes };
};

/**
 * An IDX file in shared memory: `path`, or the same with `.gz` at its end where only that is there.
 *
 * @throws DataError that ends with `cure`.
 */
export const readIdx = (path: string, cure: string): NamedBytes => {
  if (path.endsWith(".gz")) return unpack(path, cure);
  const packed = `${path}.gz`;
  return !existsSync(path) && existsSync(packed) ? unpack(packed, cure) : readShared(path, cure);
};
