import { DataError } from "./errors.ts";
import { parseIdx } from "./idx.ts";
import { makeRecords, type Records } from "./records.ts";

/** A file's bytes and the name that errors call it by. */
export interface NamedBytes {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Samples with a class each. */
export interface ImageRecords {
  readonly records: Records;
  /** Classes go from 0 to one less. */
  readonly classes: number;
}

/**
 * Images of any size with a class each, from a pair of IDX files of unsigned bytes: images [N, height, width] or [N,
 * height, width, channels], labels [N]. Fields `inputs` u8 [height, width, channels] and `labels` u8 []. Pixels stay
 * bytes, a quarter of the traffic of floats; the traced model function casts and scales them.
 *
 * @throws DataError for truncated or altered files, unequal counts, no images, or a label that is no class.
 */
export const imageRecords = (
  imageFile: NamedBytes,
  labelFile: NamedBytes,
  {
    classes,
  }: {
    /** How many classes there are. Default: one more than the greatest label. */
    readonly classes?: number | undefined;
  } = {},
): ImageRecords => {
  const withChannels = imageFile.bytes[3] === 4;
  const images = parseIdx(imageFile.bytes, imageFile.name, withChannels ? 4 : 3);
  const labels = parseIdx(labelFile.bytes, labelFile.name, 1);
  const [count, height, width, channels = 1] = images.shape as [number, number, number, number?];
  if (labels.shape[0] !== count)
    throw new DataError(
      `${imageFile.name} holds ${count} images, but ${labelFile.name} ${labels.shape[0]} labels; both must have one per image: install the data set again`,
    );
  if (count === 0 || height * width * channels === 0)
    throw new DataError(
      `${imageFile.name} holds ${count} images of ${height}×${width}×${channels}, so there is nothing to learn from; name a file with images`,
    );
  const greatest = labels.data.reduce((most, label) => Math.max(most, label), 0);
  if (classes !== undefined && greatest >= classes) {
    const bad = labels.data.findIndex((label) => label >= classes);
    throw new DataError(
      `${labelFile.name}: label ${bad} is ${labels.data[bad]}, but classes go from 0 to ${classes - 1}; the file is damaged, install the data set again, or it has more classes`,
    );
  }
  return {
    records: makeRecords(count, {
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
