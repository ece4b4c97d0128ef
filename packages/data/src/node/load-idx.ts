import { join } from "node:path";
import { type ImageRecords, imageRecords } from "../images.ts";
import { mnistFiles } from "../mnist.ts";
import { DataError } from "../errors.ts";
import { readIdx } from "./read-idx.ts";

/** Names of an image file and of its label file. */
export interface IdxPair {
  readonly images: string;
  readonly labels: string;
}

/** Folder and names of the IDX files, and the number of classes. */
export interface IdxOptions {
  /** Folder of the IDX files. */
  readonly folder: string;
  /** Names of the training files. Default: the MNIST names. Likewise for `test`. */
  readonly train?: IdxPair | undefined;
  readonly test?: IdxPair | undefined;
  /** Number of classes. Default: largest label plus 1. */
  readonly classes?: number | undefined;
}

const imageShape = ({ records }: ImageRecords): string => records.fields["inputs"]!.shape.join("×");

/**
 * Loads images of any size and number of classes from four IDX files, plain or `.gz`, into shared memory, with the
 * fields of `imageRecords`.
 *
 * @throws DataError if a file is missing, truncated or altered, and if training and test images differ in size.
 */
export const loadIdx = ({
  folder,
  train = mnistFiles.train,
  test = mnistFiles.test,
  classes,
}: IdxOptions): {
  readonly train: ImageRecords["records"];
  readonly test: ImageRecords["records"];
  readonly classes: number;
} => {
  const cure = "set folder, and train and test to its files of images and labels";
  const pair = ({ images, labels }: IdxPair): ImageRecords =>
    imageRecords(readIdx(join(folder, images), cure), readIdx(join(folder, labels), cure), { classes });
  const [training, heldOut] = [pair(train), pair(test)];
  if (imageShape(training) !== imageShape(heldOut))
    throw new DataError(
      `${join(folder, train.images)} holds images of ${imageShape(training)}, but ${join(folder, test.images)} of ${imageShape(heldOut)}; training and test images must have the same size`,
    );
  return { train: training.records, test: heldOut.records, classes: Math.max(training.classes, heldOut.classes) };
};
