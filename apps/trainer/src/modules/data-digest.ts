import { createHash } from "node:crypto";
import { isEncoded } from "@skein/data";
import type { DataSet } from "./task.ts";

/** OpenSSL takes no 2 GiB in one call. */
const mostAtOnce = 2 ** 30;

/**
/**
 * SHA-256 of all samples: their fields, layouts and bytes, wherever the files lie that they were read from, of encoded
 * ones the encoded bytes; and how training changes them.
 */
export const dataDigest = ({ train, test, predicts, classes, augmentation }: DataSet): string => {
  const hash = createHash("sha256");
  if (augmentation !== undefined) hash.update(JSON.stringify(["augmentation", augmentation]));
  // windows and their targets lie over the same bytes, which count once
  const written = new Map<ArrayBufferLike, Set<string>>();
  for (const samples of [train, test]) {
    if (isEncoded(samples)) {
      const { count, firstImage, images } = samples;
      hash.update(JSON.stringify([images.digest, count, firstImage, predicts, classes ?? null]));
      continue;
    }
    const { count, fields } = samples;
    for (const [name, { bytes, dtype, shape, offsetBytes, strideBytes }] of Object.entries(fields)) {
      hash.update(JSON.stringify([name, count, dtype, shape, offsetBytes, strideBytes, predicts, classes ?? null]));
      const place = `${bytes.byteOffset} ${bytes.length}`;
      const places = written.get(bytes.buffer) ?? new Set();
      if (places.has(place)) continue;
      written.set(bytes.buffer, places.add(place));
      for (let at = 0; at < bytes.length; at += mostAtOnce) hash.update(bytes.subarray(at, at + mostAtOnce));
    }
  }
  return hash.digest("hex");
};
