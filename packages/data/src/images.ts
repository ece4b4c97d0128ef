import { DataError } from "./errors.ts";
import { parseIdx } from "./idx.ts";
import { byteRecords, type Records } from "./records.ts";

/** Bytes of a file, and the name of the file in errors. */
export interface NamedBytes {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Image samples, each with one class. */
export interface ImageRecords {
  readonly records: Records;
  /** Number of classes; labels are 0 to `classes` − 1. */
  readonly classes: number;
}

/**
 * Reads images of any size, with one class each, from a pair of IDX files of unsigned bytes: images [N, height, width]
 * or [N, height, width, channels], labels [N]. Fields: `inputs` u8 [height, width, channels] and `labels` u8 []. Pixels
 * remain bytes, which need a quarter of the memory traffic of floats. The traced model function casts and scales the
 * pixels.
 *
 * @throws DataError if a file is truncated or altered, if the counts of images and labels differ, if there are no
 * images, or if a label is out of range.
 */
export const imageRecords = (
  imageFile: NamedBytes,
  labelFile: NamedBytes,
  {
    classes,
  }: {
    /** Number of classes. Default: largest label plus 1. */
    readonly classes?: number | undefined;
  } = {},
): ImageRecords => {
  const withChannels = imageFile.bytes[3] === 4;
  const images = parseIdx(imageFile.bytes, imageFile.name, withChannels ? 4 : 3);
  const labels = parseIdx(labelFile.bytes, labelFile.name, 1);
  const [count, height, width, channels = 1] = images.shape as [number, number, number, number?];
  if (labels.shape[0] !== count)
    throw new DataError(
      `${imageFile.name} holds ${count} images, but ${labelFile.name} holds ${labels.shape[0]} labels; each image needs one label: install the data set again`,
    );
  if (count === 0 || height * width * channels === 0)
    throw new DataError(
      `${imageFile.name} holds ${count} images of ${height}×${width}×${channels}, so there is no training data; give a file with images`,
    );
  const greatest = labels.data.reduce((max, label) => Math.max(max, label), 0);
  if (classes !== undefined && greatest >= classes) {
    const bad = labels.data.findIndex((label) => label >= classes);
    throw new DataError(
      `${labelFile.name}: label ${bad} is ${labels.data[bad]}, but classes are 0 to ${classes - 1}; the file is damaged (install the data set again) or has more classes`,
    );
  }
  return {
    records: byteRecords(count, {
      inputs: {
        bytes: images.data,
        offsetBytes: 0,
        strideBytes: height * width * channels,
        dtype: "u8",
        shape: [height, width, channels],
      },
      labels: { bytes: labels.data, offsetBytes: 0, strideBytes: 1, dtype: "u8", shape: [] },
    }),
    classes: classes ?? greatest + 1,
  };
};
