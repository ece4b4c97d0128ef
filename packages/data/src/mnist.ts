import { DataError } from "./errors.ts";
import { imageRecords, type NamedBytes } from "./images.ts";
import type { Records } from "./records.ts";

/** Number of classes in MNIST and Fashion-MNIST. */
export const mnistClasses = 10;

/** Names of the four published files, for MNIST and Fashion-MNIST. */
export const mnistFiles = {
  train: { images: "train-images-idx3-ubyte", labels: "train-labels-idx1-ubyte" },
  test: { images: "t10k-images-idx3-ubyte", labels: "t10k-labels-idx1-ubyte" },
} as const;

/**
 * Reads the handwritten digits of MNIST, or the clothes of Fashion-MNIST, from a pair of IDX files. Fields: `inputs` u8
 * [28, 28, 1] and `labels` u8 [].
 *
 * @throws DataError if a file is truncated or altered, if the counts of images and labels differ, if the images have
 * another size, or if a label is above 9.
 */
export const mnistRecords = (imageFile: NamedBytes, labelFile: NamedBytes): Records => {
  const { records } = imageRecords(imageFile, labelFile, { classes: mnistClasses });
  const [height, width, channels] = records.fields["inputs"]!.shape as [number, number, number];
  if (height !== 28 || width !== 28 || channels !== 1)
    throw new DataError(
      `${imageFile.name} holds images of ${height}×${width}${channels === 1 ? "" : `×${channels}`}, but images of MNIST and Fashion-MNIST are 28×28; give the path of their files, or use data: {kind: idx}`,
    );
  return records;
};
