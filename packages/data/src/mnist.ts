import { DataError } from "./errors.ts";
import { parseIdx } from "./idx.ts";
import { makeRecords, type Records } from "./records.ts";

/** A file's bytes and the name that errors call it by. */
export interface NamedBytes {
  readonly name: string;
  readonly bytes: Uint8Array;
}

export const mnistClasses = 10;

/** Names of the four files, as they were published; Fashion-MNIST has the same. */
export const mnistFiles = {
  train: { images: "train-images-idx3-ubyte", labels: "train-labels-idx1-ubyte" },
  test: { images: "t10k-images-idx3-ubyte", labels: "t10k-labels-idx1-ubyte" },
} as const;

/**
 * Handwritten digits, or the clothes of Fashion-MNIST, from a pair of IDX files: fields `inputs` u8 [28, 28, 1] and `labels` u8 []. Pixels stay bytes, a quarter of the
 * traffic of floats; the traced model function casts and scales them.
 *
 * @throws DataError for truncated or altered files, unequal counts, or a label above 9.
 */
export const mnistRecords = (imageFile: NamedBytes, labelFile: NamedBytes): Records => {
  const images = parseIdx(imageFile.bytes, imageFile.name, 3);
  const labels = parseIdx(labelFile.bytes, labelFile.name, 1);
  const [count, height, width] = images.shape as [number, number, number];
  if (height !== 28 || width !== 28)
    throw new DataError(
      `${imageFile.name} holds images of ${height}×${width}, but those of MNIST and Fashion-MNIST are 28×28; point to their files`,
    );
  if (labels.shape[0] !== count)
    throw new DataError(
      `${imageFile.name} holds ${count} images, but ${labelFile.name} ${labels.shape[0]} labels; both must have one per image: install the data set again`,
    );
  const bad = labels.data.findIndex((label) => label >= mnistClasses);
  if (bad >= 0)
    throw new DataError(
      `${labelFile.name}: label ${bad} is ${labels.data[bad]}, but classes go from 0 to 9; the file is damaged, install the data set again`,
    );
  return makeRecords(count, {
    inputs: { bytes: images.data, offsetBytes: 0, strideBytes: height * width, dtype: "u8", shape: [height, width, 1] },
    labels: { bytes: labels.data, offsetBytes: 0, strideBytes: 1, dtype: "u8", shape: [] },
  });
};
