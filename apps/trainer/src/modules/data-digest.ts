import { createHash } from "node:crypto";
import { isEncoded, isFileWindows, isStreamed } from "@skein/data";
import type { TrainingData } from "@skein/step/node";

/** Maximum number of bytes per hash update, because OpenSSL rejects 2 GiB or more. */
const maxConcurrent = 2 ** 30;

/**
 * Computes the SHA-256 of all samples and of the augmentation, independent of file paths. Samples in memory are hashed
 * with fields, layouts and bytes. Encoded images, token files and streams are hashed by the digests of their files.
 */
export const dataDigest = ({ train, test, predicts, classes, augmentation }: TrainingData): string => {
  const hash = createHash("sha256");
  if (augmentation !== undefined) hash.update(JSON.stringify(["augmentation", augmentation]));
  // Windows and targets may share bytes, which are hashed only once.
  const written = new Map<ArrayBufferLike, Set<string>>();
  for (const samples of [train, test]) {
    if (isStreamed(samples)) {
      hash.update(JSON.stringify([samples.stream.digest, predicts, classes ?? null]));
      continue;
    }
    if (isEncoded(samples)) {
      const { count, firstImage, images, order } = samples;
      hash.update(JSON.stringify([images.digest, count, firstImage, predicts, classes ?? null]));
      if (order !== undefined) hash.update(order);
      continue;
    }
    if (isFileWindows(samples)) {
      const { count, firstToken, file } = samples;
      hash.update(
        JSON.stringify([file.digest, file.dtype, file.headerBytes, count, firstToken, predicts, classes ?? null]),
      );
      continue;
    }
    const { count, fields } = samples;
    for (const [name, { bytes, dtype, shape, offsetBytes, strideBytes }] of Object.entries(fields)) {
      hash.update(JSON.stringify([name, count, dtype, shape, offsetBytes, strideBytes, predicts, classes ?? null]));
      const range = `${bytes.byteOffset} ${bytes.length}`;
      const ranges = written.get(bytes.buffer) ?? new Set();
      if (ranges.has(range)) continue;
      written.set(bytes.buffer, ranges.add(range));
      for (let at = 0; at < bytes.length; at += maxConcurrent) hash.update(bytes.subarray(at, at + maxConcurrent));
    }
  }
  return hash.digest("hex");
};
